"""The judge mode: grades passages one by one, and asks about their gaps in a tree of follow-up questions."""
