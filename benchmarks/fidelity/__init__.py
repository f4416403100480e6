"""Constructed files, each with what must and must not be readable from its text, by construct and by spelling.

Word F1 does not see a value that moved into the next column, a power that became a digit, or a price that was struck
out. To add a kind of file: a module with `cases()`, and its row in SETS of `__main__.py`.
"""
