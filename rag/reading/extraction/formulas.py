"""Formulas as LaTeX, each once and within its sentence.

A formula reaches a page several times over: drawn, as MathML for screen readers, as the source in an annotation, as the
words of a picture. The source is taken where there is one; MathML without it is written as LaTeX.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from rag.reading.extraction.visible import hides
from rag.web.url_key import split_url

_MAX_DEPTH = 80
_FUNCTIONS: Final = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf det dim ker deg gcd"
    " arg".split()
)
_INVISIBLE = re.compile("[\u2061-\u2064\u200b]")
_STYLED: Final = "\U0001d400"
_ACCENTS: Final = {
    "¯": "overline", "‾": "overline", "_": "underline", "^": "hat", "ˆ": "hat", "~": "tilde", "˜": "tilde",
    "→": "vec", "⃗": "vec", "˙": "dot", "¨": "ddot", "⏞": "overbrace", "⏟": "underbrace",
}  # fmt: skip
_LIMITS = re.compile(r"[∑∏∐∫∮⋃⋂⋁⋀]|\\(?:lim|max|min|sup|inf|det|gcd)")
_OPEN_END = re.compile(r"\\[A-Za-z]+$|[_^]\w$")


def latex(node: Any, depth: int = 0) -> str:
    """The LaTeX of an element; of what lies too deep, its text."""
    if not isinstance(node.tag, str) or depth > _MAX_DEPTH:
        return "" if not isinstance(node.tag, str) else _sign(node.text_content())
    name = node.tag.rpartition(":")[2]
    if name in _TOKENS:
        return _TOKENS[name](_sign(node.text_content()))
    if name.startswith("annotation") or name == "mphantom":
        return ""
    parts = [latex(child, depth + 1) for child in node]
    if name == "semantics":
        return parts[0] if parts else ""
    if name in _LAYOUTS and len(parts) >= _LAYOUTS[name][0]:
        return _LAYOUTS[name][1](parts)
    if name == "mfenced":
        return _joined([node.get("open", "("), (node.get("separators") or ",")[:1].join(parts), node.get("close", ")")])
    return _joined(parts)


def _sign(text: str) -> str:
    """A token as it is typed: italic and bold letters of mathematics are plain ones."""
    plain = _INVISIBLE.sub("", " ".join(text.split())).replace("−", "-")
    return "".join(unicodedata.normalize("NFKC", one) if one >= _STYLED else one for one in plain)


def _identifier(text: str) -> str:
    if text in _FUNCTIONS:
        return f"\\{text}"
    return rf"\mathrm{{{text}}}" if len(text) > 1 and text.isalpha() and text.isascii() else text


def _operator(text: str) -> str:
    return {"{": r"\{", "}": r"\}", "%": r"\%"}.get(text, f"\\{text}" if text in _FUNCTIONS else text)


def _words(text: str) -> str:
    return rf"\text{{{text}}}" if text else " "


_TOKENS: Final[dict[str, Callable[[str], str]]] = {
    "mi": _identifier,
    "mn": str,
    "mo": _operator,
    "mtext": _words,
    "ms": _words,
    "mspace": lambda text: " ",
}


def _braced(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def _base(text: str) -> str:
    """What carries a power or an index: in braces where that would else belong to its last sign alone."""
    is_single = len(text) <= 1 or text.isalnum() or re.fullmatch(r"\\[A-Za-z]+(?:\{[^{}]*\})?|\(.*\)|\|.*\|", text)
    return text if is_single or _LIMITS.fullmatch(text) else f"{{{text}}}"


def _over(parts: Sequence[str]) -> str:
    if accent := _ACCENTS.get(parts[1]):
        return rf"\{accent}{{{parts[0]}}}"
    return f"{parts[0]}^{_braced(parts[1])}" if _LIMITS.match(parts[0]) else rf"\overset{{{parts[1]}}}{{{parts[0]}}}"


def _under(parts: Sequence[str]) -> str:
    if accent := _ACCENTS.get(parts[1]):
        return rf"\{accent}{{{parts[0]}}}"
    return f"{parts[0]}_{_braced(parts[1])}" if _LIMITS.match(parts[0]) else rf"\underset{{{parts[1]}}}{{{parts[0]}}}"


# By element: how many parts it has at least, and how they are written.
_LAYOUTS: Final[dict[str, tuple[int, Callable[[Sequence[str]], str]]]] = {
    "mfrac": (2, lambda parts: rf"\frac{{{parts[0]}}}{{{parts[1]}}}"),
    "msqrt": (0, lambda parts: rf"\sqrt{{{_joined(parts)}}}"),
    "mroot": (2, lambda parts: rf"\sqrt[{parts[1]}]{{{parts[0]}}}"),
    "msup": (2, lambda parts: f"{_base(parts[0])}^{_braced(parts[1])}"),
    "msub": (2, lambda parts: f"{_base(parts[0])}_{_braced(parts[1])}"),
    "msubsup": (3, lambda parts: f"{_base(parts[0])}_{_braced(parts[1])}^{_braced(parts[2])}"),
    "munderover": (3, lambda parts: f"{_base(parts[0])}_{_braced(parts[1])}^{_braced(parts[2])}"),
    "mover": (2, _over),
    "munder": (2, _under),
    "mtd": (0, lambda parts: _joined(parts)),
    "mtr": (0, lambda parts: " & ".join(parts)),
    "mtable": (0, lambda parts: r"\begin{matrix} " + r" \\ ".join(parts) + r" \end{matrix}"),
}


def _joined(parts: Sequence[str]) -> str:
    """The parts in a row, apart where a command or a power would else run into what follows."""
    written = ""
    for part in parts:
        written += " " + part if _OPEN_END.search(written) and part[:1].isalnum() else part
    return written


# Outermost first: what is within a formula is gone when its turn comes.
_FORMULAS: Final = (
    "//*[contains(@class,'MathJax') or contains(@class,'katex') or contains(@class,'mwe-math-element')]"
    "|//mjx-container|//math-renderer|//script[starts-with(@type,'math/')]|//math|//*[name()='m:math']"
    "|//img[contains(@class,'tex') or contains(@class,'math') or contains(@src,'latex')"
    " or starts-with(@alt,'$') or starts-with(@alt,'\\(')]"
)
_MATHJAX_CLASS = re.compile(r"(?:^|\s)MathJax(?:_\w+)?(?:\s|$)")
_KATEX_CLASS = re.compile(r"(?:^|\s)katex(?:\s|$)")
_IMAGE_CLASS = re.compile(r"(?:^|[\s_-])(?:(?:la)?tex|math|equation)(?:$|[\s_-])")
_TEX: Final = ".//annotation[contains(translate(@encoding,'TEX','tex'),'tex')]"
_MATHML: Final = ".//math|.//*[name()='m:math']"
_STYLE = re.compile(r"^\{\s*+\\(?:display|text)style\s*+(.*)\}$", re.DOTALL)
_SIZES = re.compile(r"^(?:\\(?:inline|large|small|displaystyle|dpi\s*\{\d+\}|[bf]g_\w+)\s*)+")
_BRACES = re.compile(r"([_^])\{(\w)\}(?!\w)")
_DELIMITERS = re.compile(r"^(?:\$\$?|\\\(|\\\[)(.*?)(?:\$\$?|\\\)|\\\])$", re.DOTALL)
_IS_TEX = re.compile(r"[\\^_{}=<>+*/|]|^\W*\w\W*$|\d")
_CHARACTER = re.compile(r"\bmjx-c([0-9A-F]{2,5})\b")


def write_formulas(tree: Any) -> None:
    """Put the LaTeX of each formula of `tree`, which still has its scripts, in its place."""
    for node in tree.xpath(_FORMULAS):
        if not _is_in(node, tree) or not (kind := _kind(node)) or _is_hidden(node):
            continue
        source = "" if kind == "drawn" else _tidy(_SOURCES[kind](node))
        if source or kind in ("drawn", "script"):
            _put(node, source)


def _is_in(node: Any, tree: Any) -> bool:
    """Whether an element is still a part of the tree: one within a formula that was written is not."""
    return bool(node.getparent() is not None and node.getroottree().getroot() is tree.getroottree().getroot())


def _is_hidden(node: Any) -> bool:
    return node.get("hidden") is not None or hides(node.get("style") or "")


def _kind(node: Any) -> str:
    """How a formula is given; nothing where the element is none."""
    tag, names = node.tag, node.get("class") or ""
    if tag in ("math", "m:math"):
        return "mathml"
    if tag == "script":
        return "script"
    if tag == "math-renderer":
        return "text"
    if tag == "img":
        is_named = _IMAGE_CLASS.search(names) or "latex" in (node.get("src") or "")
        return "image" if is_named or _DELIMITERS.match((node.get("alt") or "").strip()) else ""
    if tag == "mjx-container":
        return "container"
    if _MATHJAX_CLASS.search(names) and _is_one(node):
        return "drawn" if "Preview" in names or _has_source_behind(node) else "container"
    is_named = _KATEX_CLASS.search(names) or "mwe-math-element" in names
    return "container" if is_named and _is_one(node) else ""


def _is_one(node: Any) -> bool:
    """Whether an element that is named for formulas holds one, and not the text that they stand in."""
    return len(node.xpath(_MATHML)) < 2 and node.find(".//p") is None and node.tag not in ("body", "main", "article")


def _has_source_behind(node: Any) -> bool:
    """Whether MathJax's script with the source follows on what it drew of it."""
    following = node.getnext()
    while following is not None and _MATHJAX_CLASS.search(following.get("class") or ""):
        following = following.getnext()
    return following is not None and following.tag == "script" and (following.get("type") or "").startswith("math/")


def _of_script(node: Any) -> str:
    source = node.text or ""
    if "mml" not in (node.get("type") or ""):
        return source
    from lxml.html import fragment_fromstring

    return _of_mathml(fragment_fromstring(source, create_parent="div"))


def _of_mathml(node: Any) -> str:
    if found := node.xpath(_TEX):
        return str(found[0].text_content())
    maths = [node] if node.tag in ("math", "m:math") else node.xpath(_MATHML)
    if not maths:
        return ""
    return maths[0].get("alttext") or latex(maths[0])


def _of_container(node: Any) -> str:
    """The source of a formula in its element: stated, as MathML, as the words of its picture, or letter by letter."""
    stated = next((one.get("data-latex") for one in node.iter() if one.get("data-latex")), "")
    if source := stated or _of_mathml(node):
        return source
    if found := node.xpath(".//img[@alt]"):
        return str(found[0].get("alt"))
    codes = (_CHARACTER.search(one.get("class") or "") for one in node.iter("mjx-c"))
    drawn = "".join(chr(int(code[1], 16)) for code in codes if code)
    return unicodedata.normalize("NFKC", drawn) or "".join(node.text_content().split())


def _of_image(node: Any) -> str:
    if alt := (node.get("alt") or "").strip():
        return alt if _IS_TEX.search(alt) else ""
    address = split_url(node.get("src") or "")
    return next(iter(parse_qs(address.query).get("latex", [])), "") or unquote(address.query)


def _of_text(node: Any) -> str:
    return str(node.text_content())


_SOURCES: Final = {
    "script": _of_script,
    "mathml": _of_mathml,
    "container": _of_container,
    "image": _of_image,
    "text": _of_text,
}


def _tidy(source: str) -> str:
    """One line of LaTeX without delimiters, and without the commands that only set its size."""
    source = " ".join(source.split())
    for pattern in (_DELIMITERS, _STYLE):
        if match := pattern.match(source):
            source = match[1].strip()
    return _BRACES.sub(r"\1\2", _SIZES.sub("", source))


def _put(node: Any, source: str) -> None:
    """Put a formula in the place of its element, as a part of the text around it."""
    written = node.makeelement("span")
    written.text, written.tail = source, node.tail
    node.tail = None
    node.getparent().replace(node, written)
