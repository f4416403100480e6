"""Where pages rest: libraries of pages and chunks in Qdrant, jobs and conversations in SQLite.

`client.connect` opens the database, `library.open_library` a library in it, `database.Database`
the file of jobs, conversations and feedback. Nothing above this room knows which engine is below.
"""
