"""What chooses sentences without a model, and what widens a search with one."""
