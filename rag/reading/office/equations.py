"""Equations of Office Open XML (OMML) as MathML, element by element."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from rag.reading.office.package import attribute, local

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]|\S")
# Elements of which MathML has the like, with their parts in the same order; parts and all others are rows.
_NAMES = {"f": "mfrac", "sSup": "msup", "sSub": "msub", "sSubSup": "msubsup", "limLow": "munder", "limUpp": "mover"}
_NAMES |= {"m": "mtable", "eqArr": "mtable", "mr": "mtr"}
_SIGNS = {"nary": "∫", "acc": "̂", "groupChr": "⏟", "bar": "¯"}
_SUMS = "∑∏∐⋃⋂⋁⋀"


def mathml(node: Any) -> str:
    """An element of an equation as MathML."""
    name = local(node)
    written = [(local(part), mathml(part)) for part in node if not local(part).endswith("Pr")]
    parts, inside = dict(written), "".join(html for _, html in written)
    e, sub, sup = (parts.get(part, "") for part in ("e", "sub", "sup"))
    sign = _property(node, "chr", _SIGNS.get(name, ""))
    if name == "r":
        text = "".join(part.text or "" for part in node if local(part) == "t")
        is_word = len(text) > 1 and (node.find("{*}rPr/{*}nor") is not None or local(node.getparent()) == "fName")
        return f"<mi>{escape(text)}</mi>" if is_word else "".join(map(_token, _TOKEN.findall(text)))
    if name in ("t", "del", "moveFrom"):
        return ""
    if name == "rad":
        return f"<msqrt>{e}</msqrt>" if node.find("{*}deg/*") is None else f"<mroot>{e}{parts['deg']}</mroot>"
    if name == "nary":
        tag = "munderover" if sign in _SUMS else "msubsup"
        return f"<{tag}>{_token(sign)}{sub}{sup}</{tag}>{e}"
    if name == "sPre":
        return f"<msubsup><mrow></mrow>{sub}{sup}</msubsup>{e}"
    if name in _SIGNS:
        tag = "munder" if _property(node, "pos", "bot" if name == "groupChr" else "top") == "bot" else "mover"
        return f"<{tag}>{e}{_token(sign)}</{tag}>"
    if name == "d":
        fences = [
            _token(_property(node, fence, sign)) for fence, sign in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
        ]
        return f"<mrow>{fences[0]}{fences[1].join(html for part, html in written if part == 'e')}{fences[2]}</mrow>"
    if name == "e" and local(node.getparent()) in ("mr", "eqArr"):
        return f"<mtd>{inside}</mtd>" if local(node.getparent()) == "mr" else f"<mtr><mtd>{inside}</mtd></mtr>"
    return f"<{_NAMES.get(name, 'mrow')}>{inside}</{_NAMES.get(name, 'mrow')}>"


def _token(token: str) -> str:
    tag = "mn" if token[:1].isdigit() else "mi" if token.isalpha() else "mo"
    return f"<{tag}>{escape(token)}</{tag}>" if token else ""


def _property(node: Any, name: str, default: str) -> str:
    found = node.find(f"{{*}}{local(node)}Pr/{{*}}{name}")
    return default if found is None else attribute(found, "val")
