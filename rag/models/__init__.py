"""Models: embeddings, the BM25 encoder, the chat model and structured output from it.

Hands on `load_embedding_model`, `SparseEncoder`, `build_chat_model` and `structured` from the files
of those names. Nothing here knows what is stored, and nothing heavy is imported before it is used.
"""
