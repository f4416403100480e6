"""Qdrant Edge, Qdrant's engine in process, behind the interface of `qdrant_client.QdrantClient`.

A folder holds one shard a collection. `client.EdgeClient` is what the rest of the store uses;
`backend.EdgeBackend` translates each call, and refuses by name the calls that it does not.
"""
