"""Text cleaning: removal of invisible characters, composition of accents, normalisation of line ends and blank lines.

Text that a reader cannot see must not reach a model, and offsets into the text must mean the same everywhere.
Markdown links keep their text, but not their targets.
"""

from __future__ import annotations

import re
import unicodedata

from rag.patterns import lazy_regex

_LINE_ENDS = lazy_regex(r"\r\n?|[\u0085\u2028\u2029\x0b\x0c]")
_INVISIBLE = lazy_regex(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\ue000-\uf8ff"
    r"\U000e0000-\U000e0fff\U000f0000-\U0010ffff]+"
)
# Joiners shape Persian and Indic words; next to an ASCII letter or a space they only hide text.
_STRAY_JOINER = lazy_regex(r"(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])")
_SPACES = lazy_regex(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
# Only letters with combining marks: NFC would also replace whole ideographs with look-alikes.
_DECOMPOSED = lazy_regex(r".[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff\u3099\u309a]+")
_TRAILING = lazy_regex(r"(?<![ \t])[ \t]++$", re.MULTILINE)
_BLANK_LINES = lazy_regex(r"\n{3,}")
_CODE = lazy_regex(r"(^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\2[^\n]*$|\Z)|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_COMMENT = lazy_regex(r"<!--(?:[^<-]++|-(?!->)|<(?!!--))*+-->")
_LINK = lazy_regex(
    r"!?\[(?P<words>[^\[\]]{0,1000})\]"
    r"(?:\(\s*+(?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\)){0,2000}+)(?:\s++(?:\"[^\"]*\"|'[^']*'))?\s*+\)|\[[^\[\]\n]{0,200}\])"
)
_DEFINITION = lazy_regex(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]+\S[^\n]*\n?", re.MULTILINE)
_AUTOLINK = lazy_regex(r"<((?:https?://|mailto:)[^<>\s]+)>")
_HEADING = lazy_regex(r"^#{1,6} +([^ \n].*)$", re.MULTILINE)
_FRONT_MATTER = lazy_regex(r"\A---\n(.*?)\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_TITLE = lazy_regex(r"^title:(.*)$", re.MULTILINE)


def clean_text(text: str) -> str:
    """Remove invisible characters, repeated blank lines, and space around the text or at line ends."""
    text = _LINE_ENDS.sub("\n", text)
    text = _STRAY_JOINER.sub("", _INVISIBLE.sub("", text))
    text = _DECOMPOSED.sub(lambda match: unicodedata.normalize("NFC", match[0]), text)
    text = _TRAILING.sub("", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", text).strip("\n").rstrip()


def clean_line(text: str, limit: int = 300) -> str:
    """Return `text` as one line of up to `limit` characters, for titles and names."""
    line = collapse_spaces(clean_text(text))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def collapse_spaces(text: str) -> str:
    """Return `text` on one line, with single spaces."""
    return " ".join(text.split())


def strip_link_targets(text: str) -> str:
    """Replace links and images outside code with their text; remove comments and link definitions."""
    pieces = _CODE.split(text)
    # Each code span adds two groups: itself and its fence.
    prose, code = pieces[::3], pieces[1::3]
    output = [_strip_markup(prose[0])]
    for span, following in zip(code, prose[1:], strict=True):
        output += [span, _strip_markup(following)]
    return "".join(output)


def front_matter_title(text: str) -> tuple[str, str]:
    """Return the title in a YAML header at the start of `text`, or "", and the text after the header."""
    header = _FRONT_MATTER.match(text)
    if not header:
        return "", text
    title = _TITLE.search(header[1])
    return (title[1].strip().strip("\"'").strip() if title else ""), text[header.end() :]


def first_heading(text: str) -> str:
    """Return the text of the first heading in Markdown, or "" if there is none."""
    match = _HEADING.search(text)
    return clean_line(match[1].rstrip(" #")) if match else ""


def _strip_markup(text: str) -> str:
    text = _DEFINITION.sub("", _COMMENT.sub("", text))
    text = _LINK.sub(r"\g<words>", _LINK.sub(r"\g<words>", text))  # twice: a link around an image
    return _AUTOLINK.sub(r"\1", text)
