"""Common alternatives, each a module that runs as a command: PAGES QUESTIONS RUN [K].

It writes one JSON line per question, {"id", "hits": [{"url", "text"}]}, to RUN, and prints a JSON line with
`stored_s`, `chunks`, `ms` (per question) and `encoded` (tokens through the model).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PEERS", "Peer"]


@dataclass(frozen=True)
class Peer:
    """An alternative; `module` runs as a command, with `own_packages` in the environment of `environment.py`."""

    name: str
    module: str
    says: str
    own_packages: bool = True
    options: tuple[str, ...] = ()


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "tutorial",
            "benchmarks.peers.tutorial",
            "FlagEmbedding's stock encode, SemanticChunker with its defaults, langchain-qdrant over qdrant-client's "
            "local mode, MMR with k = 10, fetch_k = 20, λ = 0.7",
            own_packages=False,
        ),
        Peer(
            "bm25retriever",
            "benchmarks.peers.bm25retriever",
            "LangChain's BM25Retriever with its defaults, over chunks of RecursiveCharacterTextSplitter(1000, 150)",
        ),
        Peer(
            "llamaindex",
            "benchmarks.peers.llamaindex",
            "llama-index: VectorStoreIndex and SentenceSplitter with their defaults (1 024 tokens, 200 overlap)",
        ),
        Peer(
            "llamaindex-256",
            "benchmarks.peers.llamaindex",
            "the same with chunks of 256 tokens (32 overlap), about as much as the weights read of a text",
            options=("256",),
        ),
    )
}
