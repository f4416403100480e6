"""The check of an answer's sentences against the passages that it cites.

`marks` finds citations, code and links, and `statements` the sentences that state something. `rules` finds the
sentences of a passage that support a statement, and compares their `terms` for verbatim copies and clear differences.
The judgement of a `verifier` overrides the rules. `citations` combines them.
"""
