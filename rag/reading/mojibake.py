"""Mojibake: text that was decoded with the wrong table, or whose font says wrong letters.

It is known by sequences that no language writes, and by how letters are used: the share of vowels, words that mix
scripts, characters that are rare in every standard. Over 8,000 texts in 90 languages, none came near the limits.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import regex

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
_LOOKED_AT = 20_000
_LEAST = 6
_LATIN_SHARE = 0.03
_GBK_SHARE = 0.4
_FILLER_SHARE = 0.02
_LETTERS = regex.compile(r"[\p{L}\p{M}]{2,}")
_BEGINNING = 3000
_FEWEST = 40
"""Letters of a script from which how they are used can be judged."""
_VOWELS = {
    "LATIN": frozenset("aeiouyıæøœəɑ"),
    "GREEK": frozenset("αεηιουω"),
    "CYRILLIC": frozenset("аеиоуыэюяієѣўәөү"),
}
_VOWEL_SHARE = (0.24, 0.68)
_MIXED_SHARE = 0.35
_COMMON_SHARE = 0.85
_EAST_ASIAN = frozenset(["CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"])
# The characters in common use of each standard: the first bytes of its levels sorted by reading or by strokes.
_COMMON = {"gb2312": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "euc_jp": (0xB0, 0xCF)}
_HANGUL = re.compile("[\uac00-\ud7a3]")


def find_mojibake(text: str) -> str:
    """A piece of `text` that shows it was decoded wrong, or that no language is written so, or "" when neither is.

    For files whose fonts may say wrong letters. A web page of random letters is what it is.
    """
    return find_wrong_decoding(text) or (text[:60] if _is_no_language(text[:_BEGINNING]) else "")


def find_wrong_decoding(text: str) -> str:
    """A piece of `text` that shows it was decoded with the wrong table, or "" when it was not."""
    sample = text[:_LOOKED_AT]
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


def _is_no_language(sample: str) -> bool:
    """Whether letters are used as no language uses them."""
    words = _LETTERS.findall(sample)
    letters = [letter for word in words for letter in word]
    if len(letters) < _FEWEST:
        return False
    # Chinese and Japanese stand beside Latin letters without a space.
    mixed = sum(len({_script(letter) for letter in word} - {"", "CJK"}) > 1 for word in words)
    return mixed > _MIXED_SHARE * len(words) or _has_odd_vowels(words) or _has_rare_characters(letters)


def _has_odd_vowels(words: Sequence[str]) -> bool:
    """Whether a text of words has far fewer or more vowels than any language that is written with them."""
    scripts = Counter(script for word in words for script in map(_script, word) if script)
    main = scripts.most_common(1)[0][0] if scripts else ""
    if main not in _VOWELS:
        return False
    # Short words are abbreviations as often as not, and capitals letters of codes.
    spoken = [word for word in words if len(word) > 2 and not word.isupper()] or words
    letters = [letter for letter in _base("".join(spoken)) if _script(letter) == main]
    lowest, highest = _VOWEL_SHARE
    share = sum(letter in _VOWELS[main] for letter in letters) / max(1, len(letters))
    return len(letters) >= _FEWEST and not lowest <= share <= highest


def _has_rare_characters(letters: Sequence[str]) -> bool:
    """Whether Chinese characters or Korean syllables are mostly ones that hardly anyone writes."""
    han = "".join(letter for letter in letters if _HAN.match(letter))
    hangul = "".join(letter for letter in letters if _HANGUL.match(letter))
    common = max(_common(han, encoding, *bounds) for encoding, bounds in _COMMON.items())
    return (len(han) >= _FEWEST and common < _COMMON_SHARE * len(han)) or (
        len(hangul) >= _FEWEST and _common(hangul, "euc_kr", 0xB0, 0xC8) < _COMMON_SHARE * len(hangul)
    )


def _common(characters: str, encoding: str, first: int, last: int) -> int:
    """How many characters an encoding writes with a first byte from `first` to `last`."""
    codes = [character.encode(encoding, "ignore") for character in characters]
    return sum(len(code) == 2 and first <= code[0] <= last for code in codes)


def _base(text: str) -> str:
    """Letters in lower case without their accents."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(letter))


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The script of a letter, one for all that Chinese, Japanese and Korean mix; "" for marks and signs."""
    name = unicodedata.name(letter, "")
    script = name.partition(" ")[0].partition("-")[0]
    return "CJK" if script in _EAST_ASIAN else script if " LETTER " in f"{name} " else ""
