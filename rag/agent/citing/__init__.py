"""Holds what an answer says against the passages that it cites.

`statements` finds what is stated, `reading` turns text into comparable tokens, `support` compares a
statement with a sentence, `source` looks for the best sentences of a passage. `rag.agent.citing.citations`
puts it together.
"""
