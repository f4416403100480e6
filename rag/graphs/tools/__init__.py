"""The tool mode: tools answer a message, called by a model or chosen by rules."""
