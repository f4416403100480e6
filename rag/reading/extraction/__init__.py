"""Main text extraction from HTML: split the visible page into blocks, score them, write the best set as Markdown.

All steps work on one lxml tree. The entry point for other packages is `rag.reading.extract`.
"""
