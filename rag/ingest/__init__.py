"""From a source to a stored page: fetch, read, chunk, embed, commit.

Everything that comes in here is untrusted. What leaves is one text for each page, its chunks and its vectors.
"""
