"""Constructed files, each with facts that its text must and must not contain, by construct and by spelling.

Word F1 misses a value that moved into the next column, a power that became a digit, and a price that was struck out. To
add a kind of file, add a module with `cases()` and an entry in SETS of `__main__.py`.
"""
