"""Qdrant Edge, Qdrant's in-process engine, behind the interface of `qdrant_client.QdrantClient`.

A folder has one shard per collection. The rest of the store uses `client.EdgeClient`; `client.EdgeBackend` translates
each call, and rejects unsupported ones by name.
"""
