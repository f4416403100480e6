"""Markdown sources: the words of links without where they lead."""

from __future__ import annotations

import re

_CODE = re.compile(r"(^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\2[^\n]*$|\Z)|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--(?:[^<-]++|-(?!->)|<(?!!--))*+-->")
_LINK = re.compile(
    r"!?\[(?P<words>[^\[\]]{0,1000})\]"
    r"(?:\(\s*+(?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\)){0,2000}+)(?:\s++(?:\"[^\"]*\"|'[^']*'))?\s*+\)|\[[^\[\]\n]{0,200}\])"
)
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]+\S[^\n]*\n?", re.MULTILINE)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]+)>")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)


def without_targets(text: str) -> str:
    """`text` with links and images replaced by their words, outside code; comments and definitions go."""
    pieces = _CODE.split(text)
    # Each code span brings two groups: itself and its fence.
    prose, code = pieces[::3], pieces[1::3]
    output = [_plain(prose[0])]
    for span, following in zip(code, prose[1:], strict=True):
        output += [span, _plain(following)]
    return "".join(output)


def front_matter_title(text: str) -> tuple[str, str]:
    """The title of a YAML header at the start of `text`, if any, and the text after that header."""
    header = _FRONT_MATTER.match(text)
    if not header:
        return "", text
    title = _TITLE.search(header[1])
    return (title[1].strip().strip("\"'").strip() if title else ""), text[header.end() :]


def _plain(text: str) -> str:
    text = _DEFINITION.sub("", _COMMENT.sub("", text))
    text = _LINK.sub(r"\g<words>", _LINK.sub(r"\g<words>", text))  # twice: a link around an image
    return _AUTOLINK.sub(r"\1", text)
