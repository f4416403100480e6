"""The `Reasoner` that graphs ask, backed by a chat model or by rules.

Also the analysis of questions and conversations that needs no graph.
"""
