"""Holds what an answer says against the passages that it cites.

`marks`, `code`, `addresses` and `remarks` tell what is no statement; `statements` finds what is stated, `source` looks
for the sentences of a passage that hold it, `rules` judge them by `terms` and `numbers`, and a `verifier` that knows
better has the last word. `rag.agent.citing.citations` puts it together.
"""
