"""Libraries in Qdrant. `client.connect` opens the database, `library.open_library` a library in it.

`edge` is the embedded engine and `retry` what stands before a server; the rest does not know which of them it calls.
"""
