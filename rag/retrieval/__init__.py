"""From a question to passages: the legs, their fusion, and MMR over the candidates.

Hands on `Retriever`. Reads the store and the models, knows nothing of who asks.
"""
