"""Tool mode: what a message asks for is told by tools, which a model chains or rules choose."""
