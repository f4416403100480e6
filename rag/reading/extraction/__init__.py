"""The main text of a page's HTML: visible parts, split into blocks, each judged, the best set written as Markdown.

All steps work on one lxml tree. Other packages enter through `rag.reading.extract`.
"""
