"""Adding pages: forms, running imports, and earlier ones."""
