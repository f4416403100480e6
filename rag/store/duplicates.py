"""Aliases of a page with several addresses, and detection of near-duplicate texts.

Each text is reduced to a set of shingles: runs of `SHINGLE` words, where a Chinese character counts as a word. The
share of equal values in two MinHash signatures estimates the Jaccard similarity of the sets (Broder, "On the
resemblance and containment of documents", 1997). Signatures are split into bands; pages that share a band are
candidates (Leskovec et al., "Mining of Massive Datasets", chapter 3). With 16 bands of 8 values, a pair of similarity s
is found with probability 1 - (1 - s^8)^16: 99.4 % at 0.85, 61 % at 0.7, 6 % at 0.5.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import unicodedata
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag.patterns import lazy_regex
from rag.types import SparseVector

if TYPE_CHECKING:
    from datasketch import MinHash

_MAX_ALIASES = 500
_MAX_ALIAS_BYTES = 100_000  # readers of exported files accept rows of up to 256 KB
SIMILARITY_THRESHOLD = 0.85
SHINGLE = 4
PERMUTATIONS = 128
BANDS = 16
_SCHEME = "affine32"  # datasketch's hash scheme; changing it invalidates stored signatures
_MIN_SHINGLES = 40  # shingles; similarity is unreliable for fewer
_BATCH = 1024  # shingles hashed per call: 0.5 MB, which fits in a core's cache
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = lazy_regex(f"[{_HAN}]|[^\\W_{_HAN}]+")


def alias_hash(address: str) -> str:
    """Return the url_hash of an alias that is already normalised by `rag.web.url_key`."""
    return hashlib.md5(address.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def merge_aliases(existing: Iterable[str], recent: Iterable[str]) -> tuple[str, ...]:
    """Merge a page's aliases, most recently seen last; drop the oldest above the limits.

    Without a limit, an address that redirects somewhere new every time would add aliases forever.
    """
    fresh = dict.fromkeys(recent)
    addresses = [*(alias for alias in dict.fromkeys(existing) if alias not in fresh), *fresh]
    selected: list[str] = []
    remaining = _MAX_ALIAS_BYTES
    for address in reversed(addresses[-_MAX_ALIASES:]):
        remaining -= len(json.dumps(address)) + 1
        if remaining < 0:
            break
        selected.append(address)
    return tuple(reversed(selected))


@dataclass(frozen=True, slots=True)
class Signature:
    """A MinHash signature. `values` are 128 little-endian uint32; empty for a text that is too short."""

    values: bytes = b""

    @property
    def bands(self) -> SparseVector:
        """The bands as terms of weight 1, so that an inverted index finds pages that share one.

        A sparse vector needs 1.3 KB per page, a keyword index 5.4 KB.
        """
        width = len(self.values) // BANDS
        pieces = (bytes([at]) + self.values[at * width : (at + 1) * width] for at in range(BANDS if width else 0))
        terms = sorted({int.from_bytes(hashlib.sha256(piece).digest()[:4], "little") for piece in pieces})
        return SparseVector(terms, [1.0] * len(terms))

    def payload(self) -> dict[str, Any]:
        return {"signature": base64.b64encode(self.values).decode()}


def signature_from(payload: Mapping[str, Any]) -> Signature:
    """Return the signature in a page's record, or an empty one if it has none."""
    return Signature(base64.b64decode(payload.get("signature", "")))


@functools.lru_cache(maxsize=64)
def sign(text: str) -> Signature:
    """Return a text's signature, cached so that the commit reuses the duplicate check's; 5 ms per 20 000 characters."""
    shingles = _shingles(text)
    if len(shingles) < _MIN_SHINGLES:
        return Signature()
    minhash = _empty_minhash().copy()
    for at in range(0, len(shingles), _BATCH):
        minhash.update_batch(shingles[at : at + _BATCH])
    values = np.asarray(minhash.hashvalues, dtype="<u4").tobytes()
    return Signature(values)


def similarity(first: Signature, second: Signature) -> float:
    """Return the estimated Jaccard similarity of two texts, 0 to 1; 0 if either has no signature."""
    if len(first.values) != len(second.values) or not first.values:
        return 0.0
    return float(np.mean(np.frombuffer(first.values, dtype="<u4") == np.frombuffer(second.values, dtype="<u4")))


def jaccard_similarity(text: str, other_text: str) -> float:
    """Return the exact Jaccard similarity of two texts, 0 to 1; works for short texts too."""
    if text == other_text:
        return 1.0
    first, second = _shingles(text), _shingles(other_text)
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / max(1, len(first) + len(second) - common)


def _shingles(text: str) -> NDArray[np.uint32]:
    """Return hashes of the distinct shingles, (n,)."""
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
    codes = {token: zlib.crc32(token.encode("utf-8", "surrogatepass")) for token in set(tokens)}
    hashed = np.fromiter((codes[token] for token in tokens), dtype=np.uint64, count=len(tokens))
    if len(hashed) < SHINGLE:
        return np.zeros(0, dtype=np.uint32)
    rolled = np.zeros(len(hashed) - SHINGLE + 1, dtype=np.uint64)
    for at in range(SHINGLE):
        rolled = (rolled + hashed[at : at + len(rolled)]) * _PRIME
    return np.unique((rolled >> np.uint64(32)).astype(np.uint32))


@functools.cache
def _empty_minhash() -> MinHash:
    """Return an empty MinHash; copying one is cheaper than generating its permutations."""
    from datasketch import MinHash

    return MinHash(num_perm=PERMUTATIONS, scheme=_SCHEME, hashfunc=_identity)


def _identity(value: Any) -> Any:
    return value
