"""Common parts of office formats: zip packages, and text, numbers and equations of Office Open XML as HTML.

The readers in `rag.reading.documents` convert this HTML to Markdown in the same way as pages.
"""
