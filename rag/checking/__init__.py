"""The check of an answer's sentences against the passages that it cites.

`marks` finds citations, code and links, and `statements` the sentences that state something. `rules` look for the
sentences of a passage that support a statement, and compare their `terms`: verbatim copies and clear differences. A
`verifier` that knows better has the last word. `citations` combines them.
"""
