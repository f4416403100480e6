"""Storage: libraries of pages and chunks in Qdrant, jobs and conversations in SQLite.

`ports` says what a library is to those above; `qdrant` is one over Qdrant, embedded or a server, and `sql` the file of
jobs, conversations and feedback.
"""
