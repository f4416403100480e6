"""What a page says by markup alone, written out in its text: powers, notes, check boxes, abbreviations, icons.

Works on an lxml tree without its hidden parts, before that is cut into blocks. Readings of ruby text are left out:
they would stand in the middle of the words that people search for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from rag.reading.extraction.clean import clean_line
from rag.reading.extraction.segments import INLINE
from rag.reading.extraction.tree import by_id
from rag.reading.extraction.visible import declarations

_STRUCK: Final = (
    "//*[@role='deletion' or contains(@style,'line-through') or contains(@class,'line-through')"
    " or contains(@class,'strike')]"
)
# What the style sheets that many sites share call it.
_STRUCK_CLASSES: Final = frozenset(
    "line-through text-decoration-line-through text-line-through strikethrough strike-through strike".split()
)
_LAST_CLASS = re.compile(r"\.([\w-]++)(?=\s{0,9}(?:,|\Z))")
_MAX_SHEET, _MAX_RULES = 200_000, 20

_RAISED: Final = (
    "//sup|//sub|//span[contains(@style,'vertical-align') or contains(@class,'sup') or contains(@class,'sub')]"
)
_RAISED_CLASSES: Final = {"super": frozenset(["sup", "superscript"]), "sub": frozenset(["sub", "subscript"])}
_MAX_RAISED = 24
_SUPERSCRIPTS = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_SUBSCRIPTS = str.maketrans("0123456789+-−–", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋")
_SIGNED_NUMBER = re.compile(r"[+\-−–]?\d{1,3}|\d?[+\-−–]")
_SIMPLE = re.compile(r"[+\-−–]?(?:\w|\d+(?:[.,]\d+)?)")
_MARK = re.compile(r"(?:st|nd|rd|th|er|re|ère|ème|eme|me|os|as|º|ª|tm|sm|mc|®|™|©)\.?", re.IGNORECASE)
_SHORT_MARK = re.compile(r"(?:(?<!\d)\d{1,2}[eo]|\bno)\.?$", re.IGNORECASE)

_LOOKED_BACK = 40
_CURRENCIES: Final = ("$", "£", "€", "¥")
_NUMBER = re.compile(r"(?P<sign>[^\s\d]?)\s?(?<![\d.,])(?P<number>\d[\d.,]*+)$")
_SUM = re.compile(r"[(\[](?![^()\[\]]*[^\W\d_]{3})[^()\[\]]+[)\]]$")
_LETTERS = re.compile(r"(?P<before>.?)\s?(?<![^\W\d_])(?P<word>[^\W\d_]++)$")
_AMOUNT_AHEAD = re.compile(r"\s?(?:[$£¥\u20a0-\u20cf]|[A-Z]{3}\b|zł|kr\b|Kč)")
_OPERATOR_AHEAD = re.compile(r"\s*[=×·*/+−^]\s*[\d(]")
_ELEMENT_AHEAD = re.compile(r"[A-Z][a-z]?\b")

_NOTE: Final = r"(?:\d{1,3}|[a-z]{1,2}|[ivx]{1,5}|(?:note|nb|n|注|註)\s?\d{1,3})"
_NOTES = re.compile(
    rf"[\[(（［]?\s*+{_NOTE}(?:\s*+[\])）］,，;]\s*+[\[(（［]?\s*+{_NOTE})*+\s*+[\])）］]?", re.IGNORECASE
)
_ONE_NOTE = re.compile(_NOTE, re.IGNORECASE)
_FIRST_LETTERS: Final = frozenset("abcdefgh")
_NOTE_CLASS = re.compile(r"\b(?:reference|noteref|fn(?:ref)?|(?:foot|end)note(?:[-_]?ref)?)\b", re.IGNORECASE)
_NOTE_LINKS: Final = "//a[contains(@href,'#')]"

_PERMALINKS: Final = ("¶", "#", "§", "🔗")

_READINGS: Final = frozenset(["rt", "rp", "rtc"])
_MAX_TITLE = 80
_MAX_SHORT = 16
_MAX_ABBREVIATIONS = 500
_LETTER = re.compile(r"[^\W\d_]{2}")
_NEAR = 150
_BOXES: Final = "//input[@type='checkbox'][not(@role) or @role='checkbox']|//*[@role='checkbox'][@aria-checked]"
_BOX_PLACES: Final = frozenset(["li", "td", "th", "dd", "dt"])
_CELLS: Final = "//td[not(text()[normalize-space()])]|//th[not(text()[normalize-space()])]"
_DRAWN_TEXT: Final = ".//text()[not(ancestor::svg)]"
_LABELS: Final = ("alt", "aria-label", "title")
_NOT_DRAWN = re.compile("[\\s\u200b\ufeff\ue000-\uf8ff\U000f0000-\U0010ffff]+")
_MAX_LABEL = 80


def mark_struck(tree: Any) -> None:
    """Put what a style or a class strikes out in an `s`; `tree` still has its style sheets."""
    for node in tree.xpath(_STRUCK):
        style = declarations(node)
        lines = style.get("text-decoration", "") + style.get("text-decoration-line", "")
        is_named = not _STRUCK_CLASSES.isdisjoint((node.get("class") or "").split())
        if "line-through" in lines or is_named or node.get("role") == "deletion":
            _strike(node)
    for name in islice(_struck_by_sheets(tree) - _STRUCK_CLASSES, _MAX_RULES):
        for node in tree.xpath("//*[contains(concat(' ',@class,' '),$name)]", name=f" {name} "):
            _strike(node)


def _struck_by_sheets(tree: Any) -> set[str]:
    """The classes that the style sheets in the page strike out."""
    sheets = (sheet.text or "" for sheet in tree.iter("style"))
    rules = (rule for sheet in sheets if "line-through" in sheet for rule in sheet[:_MAX_SHEET].split("}"))
    pairs = (rule.rpartition("{") for rule in rules if "line-through" in rule)
    return {name for selector, _, body in pairs if "line-through" in body for name in _LAST_CLASS.findall(selector)}


def _strike(node: Any) -> None:
    struck = node.makeelement("s")
    struck.text, node.text = node.text, None
    struck.extend(list(node))
    node.append(struck)


def write_notation(tree: Any, source: str) -> None:
    """Write out in `tree` what its inline markup means; `source` is what it was made from."""
    for ruby in tree.xpath("//ruby"):
        _replace(ruby, _base_text(ruby))
    for link in tree.xpath(_NOTE_LINKS):
        if link.text_content().strip() in _PERMALINKS:
            link.drop_tree()
        else:
            _write_linked_note(link)
    for node in tree.xpath(_RAISED):
        if (kind := _raised_kind(node)) and node.getparent() is not None:
            _write_raised(node, kind)
    for quote in tree.xpath("//q"):
        quote.text = "“" + (quote.text or "")
        _append(quote, "”")
    for box in tree.xpath(_BOXES) if "checkbox" in source else ():
        _write_check_box(box)
    _write_abbreviations(tree)
    empty = [cell for cell in tree.xpath(_CELLS) if not _NOT_DRAWN.sub("", "".join(cell.xpath(_DRAWN_TEXT)))]
    named = by_id(tree) if empty and "aria-labelledby" in source else {}
    for cell in empty:
        cell.text = " ".join(dict.fromkeys(filter(None, _icons(cell, named))))[:_MAX_LABEL]


def _raised_kind(node: Any) -> str:
    """`super`, `sub`, or nothing for what is not raised or lowered, or longer than what is written so."""
    if len(node) > 3 or not (text := node.text_content()).strip() or len(text) > _MAX_RAISED:
        return ""
    if node.tag in ("sup", "sub"):
        return "super" if node.tag == "sup" else "sub"
    if node.tag not in INLINE:
        return ""
    raised = declarations(node).get("vertical-align", "").partition(" ")[0]
    if raised in ("super", "sub"):
        return raised
    names = frozenset((node.get("class") or "").split())
    return next((kind for kind, known in _RAISED_CLASSES.items() if known & names), "")


def _write_linked_note(link: Any) -> None:
    """A link to a note, in a sup, around one, or right behind a word; one that is raised by a class alone, too."""
    notes = _as_notes(link.text_content().strip())
    if not notes or (node := _raised_around(link)) is None:
        return
    for child in list(link):
        child.drop_tag()
    link.text = notes
    if node is not link:
        node.drop_tag()


def _as_notes(text: str) -> str:
    """The marks of notes, `[2]` or `2, 3`, as `[^2]` or `[^2][^3]`; nothing for what is none."""
    return "".join(f"[^{note}]" for note in _ONE_NOTE.findall(text)) if _NOTES.fullmatch(text) else ""


def _raised_around(link: Any) -> Any:
    """The sup that a link to a note fills, the link itself where that is raised or named so, or None."""
    above = link.getparent()
    if above.tag == "sup" and len(above) == 1 and above.text_content().strip() == link.text_content().strip():
        return above
    is_named = link.get("role") == "doc-noteref" or _NOTE_CLASS.search(link.get("class") or "")
    if is_named or any(child.tag == "sup" for child in link):
        return link
    is_close = (link.get("href") or "").startswith("#") and re.search(r"\w[.,;。，；]?$", text_before(link))
    return link if is_close and link.text_content().strip("[]").isdigit() else None


def _write_raised(node: Any, kind: str) -> None:
    text, before = " ".join(node.text_content().split()), text_before(node)
    if before.rstrip()[-1:].isdigit():
        before = before.rstrip()
    ahead = node.tail or ""
    following = node.getnext()
    if kind == "super" and ahead.strip() in ("/", "⁄") and following is not None and following.tag == "sub":
        written = f" {text}" if before[-1:].isdigit() else text  # a fraction: 5¹/₂
    elif kind == "super":
        written = superscript(text, before, ahead, is_note=_is_note(node))
    else:
        written = text if before.endswith(("/", "⁄")) else subscript(text, before)
    if written.startswith("^"):
        _strip_before(node)
    _replace(node, written)


def _is_note(node: Any) -> bool:
    """Whether a sup is a mark of a note by its name or its own brackets."""
    names = f"{node.get('class') or ''} {node.get('role') or ''}"
    return bool(_NOTE_CLASS.search(names)) or node.text_content().strip()[:1] in "[(（［"


def superscript(text: str, before: str, ahead: str = "", *, is_note: bool = False) -> str:
    """How raised `text` reads on one line, between what stands before and after it in its paragraph.

    10 and 6: `^6`; m and 2: `²`; 4500 and 2, or a word and 2: the note `[^2]`; $19 and 99: `.99`; 3 and rd: `rd`.
    """
    notes = _as_notes(text)
    if is_note and notes:
        return notes
    if _SIGNED_NUMBER.fullmatch(text):
        return _raised_number(_with_hyphen(text), before, ahead)
    if _MARK.fullmatch(text) or _SHORT_MARK.search(before[-3:] + text):
        return text
    is_base = re.search(r"(?:(?<!\w)[^\W_]{1,2}|[)\]}])$", before)
    if is_base and not (before[-1].isdigit() and text in _FIRST_LETTERS):  # notes are lettered from a
        return "^" + (_with_hyphen(text) if _SIMPLE.fullmatch(text) else f"({text})")
    return notes or (f" {text}" if before[-1:].isalnum() and text[0].isalnum() else text)


def _with_hyphen(number: str) -> str:
    return number.replace("−", "-").replace("–", "-")


def _raised_number(text: str, before: str, ahead: str) -> str:
    is_signed = not text.isdigit()
    if number := _NUMBER.search(before):
        sign, value = number["sign"], number["number"].rstrip(".,")
        has_ended = value != number["number"]
        if len(text) == 2 and (sign in _CURRENCIES or (value != "10" and _AMOUNT_AHEAD.match(ahead))):
            return text if has_ended else f".{text}"
        is_base = len(value) < 3 and text not in ("0", "1") and sign not in _CURRENCIES and not has_ended
        is_factor = sign in ("×", "·", "*", "(", "^")
        return f"^{text}" if is_signed or is_base or is_factor or _OPERATOR_AHEAD.match(ahead) else f"[^{text}]"
    if letters := _LETTERS.search(before):
        if is_signed or len(letters["word"]) < 3:
            return text.translate(_SUPERSCRIPTS)
        is_unit = text in ("2", "3") and (letters["before"].isdigit() or letters["before"] == "/")
        return f"^{text}" if is_unit else f"[^{text}]"
    if is_signed or before[-1:] in "₀₁₂₃₄₅₆₇₈₉" or (before[-1:] in ("", " ", "(") and _ELEMENT_AHEAD.match(ahead)):
        return text.translate(_SUPERSCRIPTS)
    return f"^{text}" if _SUM.search(before) else f"[^{text}]"


def subscript(text: str, before: str) -> str:
    """How lowered `text` reads on one line: H and 2 as `₂`, x and max as `_max`, 1010 and 2 as `_2`."""
    if _SIGNED_NUMBER.fullmatch(text) and not before[-1:].isdigit():
        return text.translate(_SUBSCRIPTS)
    if before[-1:].isalnum() or before.endswith((")", "]")):
        return "_" + (text if re.fullmatch(r"\w+", text) else f"({text})")
    return text


def text_before(node: Any) -> str:
    """The end of the text before `node` in its paragraph."""
    text = ""
    while len(text) < _LOOKED_BACK:
        previous = node.getprevious()
        if previous is not None:
            if previous.tag == "br" or previous.tag not in INLINE:
                text = (previous.tail or "")[-_LOOKED_BACK:] + text
                break
            text = previous.text_content()[-_LOOKED_BACK:] + (previous.tail or "")[-_LOOKED_BACK:] + text
            node = previous
        else:
            node = node.getparent()
            if node is None:
                break
            text = (node.text or "")[-_LOOKED_BACK:] + text
            if node.tag not in INLINE:
                break
    return " ".join(text[-_LOOKED_BACK:].split()) + (" " if text[-1:].isspace() else "")


def _strip_before(node: Any) -> None:
    """Take the space away between a base and its power."""
    previous, above = node.getprevious(), node.getparent()
    if previous is not None:
        previous.tail = (previous.tail or "").rstrip()
    elif above is not None:
        above.text = (above.text or "").rstrip()


def _replace(node: Any, text: str) -> None:
    """Put `text` in the place of an element; what follows it stays."""
    for child in list(node):
        node.remove(child)
    node.text = text
    previous = node.getprevious()
    # Elements side by side are drawn apart; among text they stay, for pages with very many of them.
    if not node.tail or (previous is not None and not previous.tail):
        node.drop_tag()


def _base_text(ruby: Any) -> str:
    """The words of a ruby element without their readings, and without the spaces that only lay out its source."""
    pieces = list(_base_pieces(ruby))
    has_spaces = any(piece.isascii() and piece.strip() for piece in pieces)
    return (" " if has_spaces else "").join(" ".join(piece.split()) for piece in pieces if piece.strip())


def _base_pieces(node: Any) -> Iterator[str]:
    # An end tag that was left out makes the next base a part of the reading before it.
    is_reading = node.tag in _READINGS
    if not is_reading:
        yield node.text or ""
    for child in node:
        yield from _base_pieces(child)
        if not is_reading:
            yield child.tail or ""


def _write_abbreviations(tree: Any) -> None:
    """Behind each abbreviation, where it first stands, what it is short for, if the page says so in its title."""
    seen = set[str]()
    for node in islice(tree.iter("abbr", "acronym", "dfn"), _MAX_ABBREVIATIONS):
        short, long = clean_line(node.text_content()), clean_line(node.get("title") or "")
        if not short or short in seen:
            continue
        seen.add(short)
        around = (node.getparent().text_content() if node.getparent() is not None else "")[: 20 * _NEAR]
        is_longer = len(short) <= _MAX_SHORT and len(short) < len(long) <= _MAX_TITLE
        if is_longer and _LETTER.search(short) and _LETTER.search(long) and long.lower() not in around.lower():
            _append(node, f" ({long})")


def _append(node: Any, text: str) -> None:
    if len(node):
        node[-1].tail = (node[-1].tail or "") + text
    else:
        node.text = (node.text or "") + text


def _write_check_box(node: Any) -> None:
    state = node.get("aria-checked") or ("true" if node.get("checked") is not None else "false")
    mark = {"true": "[x]", "mixed": "[-]"}.get(state.lower(), "[ ]")
    if node.tag != "input":
        node.text = f"{mark} {(node.text or '').lstrip()}"
    elif _is_state(node):
        box = node.makeelement("span")
        box.text, box.tail = mark, " " + (node.tail or "").lstrip()
        node.getparent().replace(node, box)


def _is_state(box: Any) -> bool:
    """Whether a box says how something is; one that a form sends asks."""
    is_sent = box.get("disabled") is None and (box.get("name") or box.get("value"))
    return not is_sent and any(above.tag in _BOX_PLACES for above in box.iterancestors())


def _upwards(node: Any, top: Any) -> Iterator[Any]:
    yield node
    while node is not top:
        node = node.getparent()
        yield node


def _icons(cell: Any, named: Mapping[str, Any]) -> Iterator[str]:
    """What the pictures and icons of a cell without text are said to be; `named` are the page's elements by id."""
    for node in cell.iter():
        if node.tag == "title" or (node.tag == "desc" and node.getprevious() is None):
            yield clean_line(node.text_content())
            continue
        # What a link or a button says of itself is what it does; a picture in it says what it shows.
        is_control = node.tag not in ("img", "svg") and any(
            above.tag in ("a", "button") for above in _upwards(node, cell)
        )
        said = "" if is_control else next((node.get(name) for name in _LABELS if (node.get(name) or "").strip()), "")
        if not said and not is_control:
            labels = map(named.get, (node.get("aria-labelledby") or "").split())
            said = " ".join(label.text_content() for label in labels if label is not None)
        if said:
            yield clean_line(said)
