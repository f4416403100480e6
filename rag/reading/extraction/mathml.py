"""MathML as LaTeX: https://www.w3.org/TR/mathml-core/. Letters and signs stay the characters that they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final

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
