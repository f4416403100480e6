"""Share of whole articles in many charsets that are read correctly, compared with charset-normalizer.

    python -m benchmarks.charsets [CHARSET ...] [--limit N] [--texts FOLDER] [--json]

English articles come from ../shared/data/wcxb and aeb, Chinese ones from xquad-zh, and those in other languages from
translated manuals of Debian packages, unpacked into FOLDER (see benchmarks/README.md); without them there are fewer
rows. An article counts if its text is decoded without a wrong character: as a page that declares its charset, as a page
that declares none, and as one on a site of its country that declares none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any

from charset_normalizer import from_bytes
from lxml import etree
from lxml import html as lxml_html

from benchmarks.datasets import DEFAULT_FOLDER, sample_evenly
from benchmarks.intervals import format_mean
from benchmarks.report import OUT, table
from rag.reading.charset import decode
from rag.web.markup import codec_of

TEXTS = OUT / "help" / "usr" / "share"
_CENTRAL = ("cs", "pl", "hu", "ro", "sl", "hr")
CHARSETS: dict[str, tuple[str, ...]] = {
    "windows-1252": ("en", "de", "fr", "es", "pt", "it", "nl", "da", "sv", "fi"),
    "iso-8859-2": _CENTRAL,
    "windows-1250": _CENTRAL,
    "windows-1251": ("ru", "uk", "sr"),
    "koi8-r": ("ru",),
    "windows-1253": ("el",),
    "windows-1254": ("tr",),
    "big5": ("zh_TW",),
    "euc-kr": ("ko",),
    "shift_jis": ("ja",),
    "euc-jp": ("ja",),
    "gb18030": ("zh_CN",),
}
_COUNTRIES = {"en": "uk", "cs": "cz", "da": "dk", "sv": "se", "sl": "si", "uk": "ua", "sr": "rs", "el": "gr"}
_COUNTRIES |= {"ko": "kr", "ja": "jp"}
_SHORTEST = 300
_WAYS = ("declared", "undeclared", "country", "charset-normalizer")
_CEDILLAS = str.maketrans("șțȘȚ", "şţŞŢ")  # for Romanian in charsets without the comma-below letters


@dataclass(frozen=True, slots=True)
class Read:
    """The ways in which one article was read correctly."""

    charset: str
    language: str
    right: dict[str, bool]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.charsets", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("charsets", nargs="*", choices=[*CHARSETS, []], help="default: all")
    parser.add_argument("--limit", type=int, default=60, help="articles per language")
    parser.add_argument("--texts", type=Path, default=TEXTS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    reads = [one for charset in options.charsets or CHARSETS for one in measure(charset, options.texts, options.limit)]
    if options.json:
        print(json.dumps([{"charset": one.charset, "language": one.language, **one.right} for one in reads]))
    else:
        print(rows(reads))
    return 0


def measure(charset: str, folder: Path = TEXTS, limit: int | None = None) -> Iterator[Read]:
    """Read every article of the charset's languages each way."""
    for language in CHARSETS[charset]:
        usable = [text for text in articles(language, folder) if _fits(text, charset)]
        for text in sample_evenly(usable, limit):
            yield Read(charset, language, _read_each_way(text, charset, language))


def articles(language: str, folder: Path = TEXTS, data: Path = DEFAULT_FOLDER) -> Iterator[str]:
    """Yield the texts in a language: from the available sets, and from the manuals in `folder`."""
    for path in {"en": ["wcxb/truth.jsonl", "aeb/truth.jsonl"], "zh_CN": ["xquad-zh/pages.jsonl"]}.get(language, []):
        if (data / path).exists():
            with (data / path).open(encoding="utf-8") as lines:
                yield from (json.loads(line)["text"] for line in lines)
    for path in sorted((folder / "help" / language).rglob("*.page")):
        yield from _text(etree.parse(path, etree.XMLParser(recover=True)).getroot(), "{*}info")
    for path in sorted((folder / "libreoffice" / "help" / language.replace("_", "-")).rglob("*.html")):
        yield from _text(lxml_html.parse(path).getroot(), "head")


def _text(root: Any, excluded: str) -> Iterator[str]:
    for part in [*root.iter(excluded, "script", "style")]:
        part.clear()
    lines = (" ".join(line.split()) for line in "".join(root.itertext()).splitlines())
    yield "\n".join(line for line in lines if line).translate(_CEDILLAS)


def _fits(text: str, charset: str) -> bool:
    """Return whether a text is long enough and the charset has most of its characters outside ASCII."""
    outside = [character for character in text if character >= "\x80"]
    supported = sum(_is_in(character, charset) for character in outside)
    return len(text) >= _SHORTEST and supported > 0.9 * len(outside)


def _is_in(character: str, charset: str) -> bool:
    try:
        return bool(character.encode(_codec(charset)))
    except UnicodeEncodeError:
        return False


def _codec(charset: str) -> str:
    return codec_of(charset) or charset


def _read_each_way(text: str, charset: str, language: str) -> dict[str, bool]:
    # Characters that the charset lacks are written as references.
    page, bare = (_page(text, name).encode(_codec(charset), "xmlcharrefreplace") for name in (charset, ""))
    site = f"https://example.{_COUNTRIES.get(language, language[-2:].lower())}/"
    readers: dict[str, Callable[[], str]] = {
        "declared": lambda: decode(page),
        "undeclared": lambda: decode(bare),
        "country": lambda: decode(bare, url=site),
        "charset-normalizer": lambda: _normalize(bare),
    }
    return {way: unescape(readers[way]()).endswith(f"<p>{text}</p>") for way in _WAYS}


def _page(text: str, charset: str) -> str:
    head = f'<meta charset="{charset}">' if charset else ""
    return f"<!doctype html><html><head>{head}<title>{escape(text[:60])}</title></head><body><p>{escape(text)}</p>"


def _normalize(body: bytes) -> str:
    best = from_bytes(body).best()
    name = best.encoding.replace("_", "-") if best else "utf-8"
    return body.decode(_codec(name), "replace")


def rows(results: Sequence[Read]) -> str:
    """Return a table: the share read correctly each way, and the difference to charset-normalizer undeclared."""
    kinds = list(dict.fromkeys((one.charset, one.language) for one in results))
    parts = [(*kind, [one.right for one in results if (one.charset, one.language) == kind]) for kind in kinds]
    parts.append(("all", "", [one.right for one in results]))
    return table(
        ["", "articles", *_WAYS, "undeclared minus charset-normalizer"],
        [
            [
                f"{charset} {language}".strip(),
                str(len(flags)),
                *(f"{sum(right[way] for right in flags) / max(1, len(flags)):.2f}" for way in _WAYS),
                format_mean([right["undeclared"] - right["charset-normalizer"] for right in flags], signed=True),
            ]
            for charset, language, flags in parts
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
