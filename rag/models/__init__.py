"""Embedding models, the BM25 encoder, chat models and structured output from them.

Nothing here depends on what is stored, and nothing heavy is imported before it is used.
"""
