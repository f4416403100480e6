"""Embedding models, the BM25 encoder, rerankers, verifiers, and chat models with structured output.

Nothing here depends on stored data, and heavy packages are imported on first use.
"""
