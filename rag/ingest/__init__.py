"""The ingestion pipeline, from a source to a stored page: fetch, read, split, embed, commit.

All input is untrusted. The output is one text per page, its chunks and its vectors.
"""
