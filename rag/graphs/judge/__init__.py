"""The judge mode: passages are graded one by one, and their gaps lead to a tree of further questions."""
