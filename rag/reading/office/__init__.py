"""What office formats have in common: zip packages, and text, numbers and equations of Office Open XML as HTML.

The readers of `rag.reading.documents` hand that on to the writer of Markdown that pages have too.
"""
