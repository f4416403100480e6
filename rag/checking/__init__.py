"""Holds what an answer says against the passages that it cites.

`marks` tells what is no statement, `statements` finds what is stated, `rules` look for the sentences of a passage that
hold it and judge them by `terms`, verbatim copies and plain differences, and a `verifier` that knows better has the
last word. `citations` puts it together.
"""
