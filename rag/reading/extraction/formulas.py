"""Formulas as LaTeX, each written once and within its sentence.

A page may have a formula several times: rendered, as MathML for screen readers, as source in an annotation, as the
alternative text of an image. The source is preferred; MathML without one is converted to LaTeX.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from rag.reading.extraction.tree import is_closed
from rag.text import lazy_regex
from rag.web.urls import split_url

_MAX_DEPTH = 80
_FUNCTIONS: Final = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf det dim ker deg gcd"
    " arg".split()
)
_INVISIBLE = lazy_regex("[\u2061-\u2064\u200b]")
_FIRST_STYLED: Final = "\U0001d400"
_ACCENTS: Final = {
    "¯": "overline", "‾": "overline", "_": "underline", "^": "hat", "ˆ": "hat", "~": "tilde", "˜": "tilde",
    "→": "vec", "⃗": "vec", "˙": "dot", "¨": "ddot", "⏞": "overbrace", "⏟": "underbrace",
}  # fmt: skip
_LIMITS = lazy_regex(r"[∑∏∐∫∮⋃⋂⋁⋀]|\\(?:lim|max|min|sup|inf|det|gcd)")
_OPEN_END = lazy_regex(r"\\[A-Za-z]+$|[_^]\w$")


def latex(node: Any, depth: int = 0) -> str:
    """Convert a MathML element to LaTeX, or to plain text if it is nested too deeply."""
    if not isinstance(node.tag, str):
        return ""
    if depth > _MAX_DEPTH:
        return _normalize(node.text_content())
    name = node.tag.rpartition(":")[2]
    if name in _TOKENS:
        return _TOKENS[name](_normalize(node.text_content()))
    if name.startswith("annotation") or name == "mphantom":
        return ""
    parts = [latex(child, depth + 1) for child in node]
    if name == "semantics":
        return parts[0] if parts else ""
    if name in _LAYOUTS and len(parts) >= _LAYOUTS[name][0]:
        return _LAYOUTS[name][1](parts)
    if name == "mfenced":
        return _join([node.get("open", "("), (node.get("separators") or ",")[:1].join(parts), node.get("close", ")")])
    return _join(parts)


def _normalize(text: str) -> str:
    """Normalise a token: mathematical italic and bold letters become plain ones."""
    plain = _INVISIBLE.sub("", " ".join(text.split())).replace("−", "-")
    return "".join(unicodedata.normalize("NFKC", sign) if sign >= _FIRST_STYLED else sign for sign in plain)


def _format_identifier(text: str) -> str:
    if text in _FUNCTIONS:
        return f"\\{text}"
    return rf"\mathrm{{{text}}}" if len(text) > 1 and text.isalpha() and text.isascii() else text


def _format_operator(text: str) -> str:
    return {"{": r"\{", "}": r"\}", "%": r"\%"}.get(text, f"\\{text}" if text in _FUNCTIONS else text)


def _format_words(text: str) -> str:
    return rf"\text{{{text}}}" if text else " "


_TOKENS: Final[dict[str, Callable[[str], str]]] = {
    "mi": _format_identifier,
    "mn": str,
    "mo": _format_operator,
    "mtext": _format_words,
    "ms": _format_words,
    "mspace": lambda text: " ",
}


def _brace(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def _brace_base(text: str) -> str:
    """Wrap the base of a power or an index in braces, without which LaTeX would only raise its last character."""
    is_single = len(text) <= 1 or text.isalnum() or re.fullmatch(r"\\[A-Za-z]+(?:\{[^{}]*\})?|\(.*\)|\|.*\|", text)
    return text if is_single or _LIMITS.fullmatch(text) else f"{{{text}}}"


def _format_aside(base: str, aside: str, sign: str, command: str) -> str:
    """Return a base with something over or under it: an accent, a limit after `sign`, or else by `command`."""
    if accent := _ACCENTS.get(aside):
        return rf"\{accent}{{{base}}}"
    return f"{base}{sign}{_brace(aside)}" if _LIMITS.match(base) else rf"\{command}{{{aside}}}{{{base}}}"


def _format_scripts(parts: Sequence[str]) -> str:
    return f"{_brace_base(parts[0])}_{_brace(parts[1])}^{_brace(parts[2])}"


# By element: the minimum number of children, and a function that formats them.
_LAYOUTS: Final[dict[str, tuple[int, Callable[[Sequence[str]], str]]]] = {
    "mfrac": (2, lambda parts: rf"\frac{{{parts[0]}}}{{{parts[1]}}}"),
    "msqrt": (0, lambda parts: rf"\sqrt{{{_join(parts)}}}"),
    "mroot": (2, lambda parts: rf"\sqrt[{parts[1]}]{{{parts[0]}}}"),
    "msup": (2, lambda parts: f"{_brace_base(parts[0])}^{_brace(parts[1])}"),
    "msub": (2, lambda parts: f"{_brace_base(parts[0])}_{_brace(parts[1])}"),
    "msubsup": (3, _format_scripts),
    "munderover": (3, _format_scripts),
    "mover": (2, lambda parts: _format_aside(parts[0], parts[1], "^", "overset")),
    "munder": (2, lambda parts: _format_aside(parts[0], parts[1], "_", "underset")),
    "mtd": (0, lambda parts: _join(parts)),
    "mtr": (0, lambda parts: " & ".join(parts)),
    "mtable": (0, lambda parts: r"\begin{matrix} " + r" \\ ".join(parts) + r" \end{matrix}"),
}


def _join(parts: Sequence[str]) -> str:
    """Join the parts, with a space where a command or a power would run into the next one."""
    result = ""
    for part in parts:
        result += " " + part if _OPEN_END.search(result) and part[:1].isalnum() else part
    return result


# XPath returns the outermost element first, so elements within a formula are detached when their turn comes.
_FORMULAS: Final = (
    "//*[contains(@class,'MathJax') or contains(@class,'katex') or contains(@class,'mwe-math-element')]"
    "|//mjx-container|//math-renderer|//script[starts-with(@type,'math/')]|//math|//*[name()='m:math']"
    "|//img[contains(@class,'tex') or contains(@class,'math') or contains(@src,'latex')"
    " or starts-with(@alt,'$') or starts-with(@alt,'\\(')]"
)
_MATHJAX_CLASS = lazy_regex(r"(?:^|\s)MathJax(?:_\w+)?(?:\s|$)")
_KATEX_CLASS = lazy_regex(r"(?:^|\s)katex(?:\s|$)")
_IMAGE_CLASS = lazy_regex(r"(?:^|[\s_-])(?:(?:la)?tex|math|equation)(?:$|[\s_-])")
_TEX: Final = ".//annotation[contains(translate(@encoding,'TEX','tex'),'tex')]"
_MATHML: Final = ".//math|.//*[name()='m:math']"
_STYLE = lazy_regex(r"^\{\s*+\\(?:display|text)style\s*+(.*)\}$", re.DOTALL)
_SIZES = lazy_regex(r"^(?:\\(?:inline|large|small|displaystyle|dpi\s*\{\d+\}|[bf]g_\w+)\s*)+")
_BRACES = lazy_regex(r"([_^])\{(\w)\}(?!\w)")
_DELIMITERS = lazy_regex(r"^(?:\$\$?|\\\(|\\\[)(.*?)(?:\$\$?|\\\)|\\\])$", re.DOTALL)
_IS_TEX = lazy_regex(r"[\\^_{}=<>+*/|]|^\W*\w\W*$|\d")
_CHARACTER = lazy_regex(r"\bmjx-c([0-9A-F]{2,5})\b")


def write_formulas(tree: Any) -> None:
    """Replace each formula of `tree`, which must still have its scripts, with its LaTeX."""
    root = tree.getroottree().getroot()
    for node in tree.xpath(_FORMULAS):
        if node.getparent() is None or node.getroottree().getroot() is not root:
            continue  # it was within a formula that has been replaced
        if not (kind := _find_formula_kind(node)) or is_closed(node):
            continue
        source = "" if kind == "drawn" else _normalize_source(_SOURCES[kind](node))
        if source or kind in ("drawn", "script"):
            span = node.makeelement("span")
            span.text, span.tail = source, node.tail
            node.tail = None
            node.getparent().replace(node, span)


def _find_formula_kind(node: Any) -> str:
    """Return a formula's kind (a key of _SOURCES, or "drawn" if it has a source elsewhere), or "" if it is none."""
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
    if _MATHJAX_CLASS.search(names) and _is_formula(node):
        return "drawn" if "Preview" in names or _has_source_after(node) else "container"
    is_named = _KATEX_CLASS.search(names) or "mwe-math-element" in names
    return "container" if is_named and _is_formula(node) else ""


def _is_formula(node: Any) -> bool:
    """Return whether an element with a formula's class is a single formula, not the text around several."""
    return len(node.xpath(_MATHML)) < 2 and node.find(".//p") is None and node.tag not in ("body", "main", "article")


def _has_source_after(node: Any) -> bool:
    """Return whether MathJax's script with the source follows its output."""
    following = node.getnext()
    while following is not None and _MATHJAX_CLASS.search(following.get("class") or ""):
        following = following.getnext()
    return following is not None and following.tag == "script" and (following.get("type") or "").startswith("math/")


def _read_script(node: Any) -> str:
    source = node.text or ""
    if "mml" not in (node.get("type") or ""):
        return source
    from lxml.html import fragment_fromstring

    return _read_mathml(fragment_fromstring(source, create_parent="div"))


def _read_mathml(node: Any) -> str:
    if annotations := node.xpath(_TEX):
        return str(annotations[0].text_content())
    elements = [node] if node.tag in ("math", "m:math") else node.xpath(_MATHML)
    if not elements:
        return ""
    return elements[0].get("alttext") or latex(elements[0])


def _read_container(node: Any) -> str:
    """Return a formula's source from its attribute, MathML, alternative text or characters, in this order."""
    attribute = next((element.get("data-latex") for element in node.iter() if element.get("data-latex")), "")
    if source := attribute or _read_mathml(node):
        return source
    if images := node.xpath(".//img[@alt]"):
        return str(images[0].get("alt"))
    codes = (_CHARACTER.search(element.get("class") or "") for element in node.iter("mjx-c"))
    characters = "".join(chr(int(code[1], 16)) for code in codes if code)
    return unicodedata.normalize("NFKC", characters) or "".join(node.text_content().split())


def _read_image(node: Any) -> str:
    if alt := (node.get("alt") or "").strip():
        return alt if _IS_TEX.search(alt) else ""
    address = split_url(node.get("src") or "")
    return next(iter(parse_qs(address.query).get("latex", [])), "") or unquote(address.query)


_SOURCES: Final[dict[str, Callable[[Any], str]]] = {
    "script": _read_script,
    "mathml": _read_mathml,
    "container": _read_container,
    "image": _read_image,
    "text": lambda node: str(node.text_content()),
}


def _normalize_source(source: str) -> str:
    """Return LaTeX on one line, without delimiters or commands that only set its size."""
    source = " ".join(source.split())
    for pattern in (_DELIMITERS, _STYLE):
        if match := pattern.match(source):
            source = match[1].strip()
    return _BRACES.sub(r"\1\2", _SIZES.sub("", source))
