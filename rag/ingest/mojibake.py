"""Text that was decoded with the wrong table: known by sequences that no language writes."""

from __future__ import annotations

import re

# UTF-8 read as Latin-1 or Windows-1252: a lead byte, then one or more bytes of continuation.
_AS_LATIN = re.compile(
    "[\u00c2-\u00df][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
    "|[\u00e0-\u00ef][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{1,2}"
)
# GBK read as Latin-1: runs of its upper half, where European words have one such letter at a time.
_GBK_AS_LATIN = re.compile("[\u00a1-\u00ff]{4,}")
_FILLER = re.compile("锟斤拷|锟斤|斤拷|烫烫烫|屯屯屯|\ufffd")
_HAN = re.compile("[\u4e00-\u9fff]")
_WIDE = re.compile("[^\x00-\u00ff]+")
_SAMPLE = 20_000
_LEAST = 6
_LATIN_SHARE = 0.03
_GBK_SHARE = 0.4
_FILLER_SHARE = 0.02


def find_mojibake(text: str) -> str:
    """A piece of `text` that shows it was decoded wrong, or "" when it was not."""
    sample = text[:_SAMPLE]
    for pattern, share in (
        (_FILLER, _FILLER_SHARE),
        (_AS_LATIN, _LATIN_SHARE),
        (_GBK_AS_LATIN, _LATIN_SHARE * 5),
    ):
        found = list(pattern.finditer(sample))
        covered = sum(len(match[0]) for match in found)
        if covered >= _LEAST and covered >= share * len(sample):
            start = max(0, found[0].start() - 10)
            return sample[start : start + 60]
    return sample[:60] if _is_utf8_as_gbk(sample) else ""


def _is_utf8_as_gbk(sample: str) -> bool:
    """Whether the bytes that the characters are in GBK make Chinese in UTF-8, as those of real text do not."""
    raw = b"".join(run.encode("gb18030", "ignore") for run in _WIDE.findall(sample))
    recovered = 3 * len(_HAN.findall(raw.decode("utf-8", "ignore")))
    return recovered >= 3 * _LEAST and recovered >= _GBK_SHARE * len(raw)
