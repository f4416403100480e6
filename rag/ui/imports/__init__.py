"""Adding pages: what is asked for, and imports as they happen and as they were."""
