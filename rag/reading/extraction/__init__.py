"""From a page's HTML to its text: what is shown, cut into blocks, each judged, the best set written as Markdown.

Works on one lxml tree throughout. Hands on nothing by itself: `rag.reading.extract` is the front door.
"""
