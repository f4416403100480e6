"""Storage: libraries of pages and chunks in Qdrant; jobs and conversations in SQLite or Postgres.

`qdrant` implements a library over Qdrant, embedded or on a server; `sql` has jobs, conversations and feedback.
"""
