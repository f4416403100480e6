"""Meaning that only markup conveys, written into the text: powers, notes, check boxes, abbreviations, icons.

Works on an lxml tree without hidden parts, before it is split into blocks. Ruby readings are dropped, because they
would split the words that users search for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from typing import Any, Final

from rag.reading.extraction.segments import INLINE
from rag.reading.extraction.tree import index_by_id, read_inline_style
from rag.text import clean_line, lazy_regex

_STRIKES: Final = (
    "//*[@role='deletion' or contains(@style,'line-through') or contains(@class,'line-through')"
    " or contains(@class,'strike')]"
)
# Class names of widely used style sheets.
_STRIKE_CLASSES: Final = frozenset(
    "line-through text-decoration-line-through text-line-through strikethrough strike-through strike".split()
)
_LAST_CLASS = lazy_regex(r"\.([\w-]++)(?=\s{0,9}(?:,|\Z))")
_MAX_SHEET, _MAX_RULES = 200_000, 20

_RAISED: Final = (
    "//sup|//sub|//span[contains(@style,'vertical-align') or contains(@class,'sup') or contains(@class,'sub')]"
)
_RAISED_CLASSES: Final = {"super": frozenset(["sup", "superscript"]), "sub": frozenset(["sub", "subscript"])}
_MAX_RAISED = 24
_SUPERSCRIPTS = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_SUBSCRIPTS = str.maketrans("0123456789+-−–", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋")
_SIGNED_NUMBER = lazy_regex(r"[+\-−–]?\d{1,3}|\d?[+\-−–]")
_SIMPLE = lazy_regex(r"[+\-−–]?(?:\w|\d+(?:[.,]\d+)?)")
_MARK = lazy_regex(r"(?:st|nd|rd|th|er|re|ère|ème|eme|me|os|as|º|ª|tm|sm|mc|®|™|©)\.?", re.IGNORECASE)
_SHORT_MARK = lazy_regex(r"(?:(?<!\d)\d{1,2}[eo]|\bno)\.?$", re.IGNORECASE)

_LOOKBACK = 40
_CURRENCIES: Final = ("$", "£", "€", "¥")
_NUMBER = lazy_regex(r"(?P<sign>[^\s\d]?)\s?(?<![\d.,])(?P<number>\d[\d.,]*+)$")
_SUM = lazy_regex(r"[(\[](?![^()\[\]]*[^\W\d_]{3})[^()\[\]]+[)\]]$")
_LETTERS = lazy_regex(r"(?P<before>.?)\s?(?<![^\W\d_])(?P<word>[^\W\d_]++)$")
_AMOUNT_AHEAD = lazy_regex(r"\s?(?:[$£¥\u20a0-\u20cf]|[A-Z]{3}\b|zł|kr\b|Kč)")
_OPERATOR_AHEAD = lazy_regex(r"\s*[=×·*/+−^]\s*[\d(]")
_ELEMENT_AHEAD = lazy_regex(r"[A-Z][a-z]?\b")

_NOTE: Final = r"(?:\d{1,3}|[a-z]{1,2}|[ivx]{1,5}|(?:note|nb|n|注|註)\s?\d{1,3})"
_NOTES = lazy_regex(
    rf"[\[(（［]?\s*+{_NOTE}(?:\s*+[\])）］,，;]\s*+[\[(（［]?\s*+{_NOTE})*+\s*+[\])）］]?", re.IGNORECASE
)
_ONE_NOTE = lazy_regex(_NOTE, re.IGNORECASE)
_FIRST_LETTERS: Final = frozenset("abcdefgh")
_NOTE_CLASS = lazy_regex(r"\b(?:reference|noteref|fn(?:ref)?|(?:foot|end)note(?:[-_]?ref)?)\b", re.IGNORECASE)
_NOTE_LINKS: Final = "//a[contains(@href,'#')]"

_PERMALINKS: Final = ("¶", "#", "§", "🔗")

_READINGS: Final = frozenset(["rt", "rp", "rtc"])
_MAX_TITLE = 80
_MAX_SHORT = 16
_MAX_ABBREVIATIONS = 500
_LETTER = lazy_regex(r"[^\W\d_]{2}")
_NEAR = 150
_BOXES: Final = "//input[@type='checkbox'][not(@role) or @role='checkbox']|//*[@role='checkbox'][@aria-checked]"
_BOX_PLACES: Final = frozenset(["li", "td", "th", "dd", "dt"])
_CELLS: Final = "//td[not(text()[normalize-space()])]|//th[not(text()[normalize-space()])]"
_VISIBLE_TEXT: Final = ".//text()[not(ancestor::svg)]"
_LABELS: Final = ("alt", "aria-label", "title")
# Names of marks in icon fonts, such as Font Awesome's "fa-check" and "fa-xmark".
_TICK, _CROSS = (
    lazy_regex(rf"(?<![^\W_])(?:{names})(?![^\W_])") for names in ("check(?:mark)?|tick", "x-?mark|times|cross")
)
_INVISIBLE = lazy_regex("[\\s\u200b\ufeff\ue000-\uf8ff\U000f0000-\U0010ffff]+")
_MAX_LABEL = 80


def mark_struck(tree: Any) -> None:
    """Wrap text that a style or a class strikes out in an `s`; `tree` must still have its style sheets."""
    for node in tree.xpath(_STRIKES):
        style = read_inline_style(node)
        lines = style.get("text-decoration", "") + style.get("text-decoration-line", "")
        is_named = not _STRIKE_CLASSES.isdisjoint((node.get("class") or "").split())
        if "line-through" in lines or is_named or node.get("role") == "deletion":
            _wrap_struck(node)
    for name in islice(_find_strike_classes(tree) - _STRIKE_CLASSES, _MAX_RULES):
        for node in tree.xpath("//*[contains(concat(' ',@class,' '),$name)]", name=f" {name} "):
            _wrap_struck(node)


def _find_strike_classes(tree: Any) -> set[str]:
    """Return the classes that the style sheets in the page strike out."""
    sheets = (sheet.text or "" for sheet in tree.iter("style"))
    rules = (rule for sheet in sheets if "line-through" in sheet for rule in sheet[:_MAX_SHEET].split("}"))
    pairs = (rule.rpartition("{") for rule in rules if "line-through" in rule)
    return {name for selector, _, body in pairs if "line-through" in body for name in _LAST_CLASS.findall(selector)}


def _wrap_struck(node: Any) -> None:
    wrapper = node.makeelement("s")
    wrapper.text, node.text = node.text, None
    wrapper.extend(list(node))
    node.append(wrapper)


def write_notation(tree: Any, source: str) -> None:
    """Write the meaning of inline markup into `tree`; `source` is the HTML that it was parsed from."""
    for ruby in tree.xpath("//ruby"):
        # The base text, without readings and the spaces of its source layout.
        pieces = [piece for piece in _iter_base_pieces(ruby) if piece.strip()]
        separator = " " if any(map(str.isascii, pieces)) else ""
        _replace_content(ruby, separator.join(" ".join(piece.split()) for piece in pieces))
    for link in tree.xpath(_NOTE_LINKS):
        if link.text_content().strip() in _PERMALINKS:
            link.drop_tree()
        else:
            _write_linked_note(link)
    for node in tree.xpath(_RAISED):
        if (kind := _find_script_kind(node)) and node.getparent() is not None:
            _write_raised(node, kind)
    for quote in tree.xpath("//q"):
        quote.text = "“" + (quote.text or "")
        _append(quote, "”")
    for box in tree.xpath(_BOXES) if "checkbox" in source else ():
        _write_check_box(box)
    _write_abbreviations(tree)
    empty_cells = [cell for cell in tree.xpath(_CELLS) if not _INVISIBLE.sub("", "".join(cell.xpath(_VISIBLE_TEXT)))]
    elements = index_by_id(tree) if empty_cells and "aria-labelledby" in source else {}
    for cell in empty_cells:
        labels = " ".join(dict.fromkeys(filter(None, _iter_icon_labels(cell, elements))))[:_MAX_LABEL]
        cell.text = labels or _read_icon_class(cell)


def _find_script_kind(node: Any) -> str:
    """Return `super`, `sub`, or "" if the element is neither or too long."""
    if len(node) > 3 or not (text := node.text_content()).strip() or len(text) > _MAX_RAISED:
        return ""
    if node.tag in ("sup", "sub"):
        return "super" if node.tag == "sup" else "sub"
    if node.tag not in INLINE:
        return ""
    alignment = read_inline_style(node).get("vertical-align", "").partition(" ")[0]
    if alignment in ("super", "sub"):
        return alignment
    names = frozenset((node.get("class") or "").split())
    return next((kind for kind, classes in _RAISED_CLASSES.items() if classes & names), "")


def _write_linked_note(link: Any) -> None:
    """Write a link to a note as its mark, if the link is in or around a sup, named as a note, or right after a word."""
    notes = _format_notes(link.text_content().strip())
    if not notes or (node := _find_note_node(link)) is None:
        return
    for child in list(link):
        child.drop_tag()
    link.text = notes
    if node is not link:
        node.drop_tag()


def _format_notes(text: str) -> str:
    """Return the marks of notes, `[2]` or `2, 3`, as `[^2]` or `[^2][^3]`; "" if `text` has none."""
    return "".join(f"[^{note}]" for note in _ONE_NOTE.findall(text)) if _NOTES.fullmatch(text) else ""


def _find_note_node(link: Any) -> Any:
    """Return the sup that a link to a note fills, the link itself if it is raised or named as a note, or None."""
    parent = link.getparent()
    if parent.tag == "sup" and len(parent) == 1 and parent.text_content().strip() == link.text_content().strip():
        return parent
    is_named = link.get("role") == "doc-noteref" or _NOTE_CLASS.search(link.get("class") or "")
    if is_named or any(child.tag == "sup" for child in link):
        return link
    is_close = (link.get("href") or "").startswith("#") and re.search(r"\w[.,;。，；]?$", get_text_before(link))
    return link if is_close and link.text_content().strip("[]").isdigit() else None


def _write_raised(node: Any, kind: str) -> None:
    text, before = " ".join(node.text_content().split()), get_text_before(node)
    if before.rstrip()[-1:].isdigit():
        before = before.rstrip()
    ahead = node.tail or ""
    following = node.getnext()
    if kind == "super" and ahead.strip() in ("/", "⁄") and following is not None and following.tag == "sub":
        result = f" {text}" if before[-1:].isdigit() else text  # a fraction: 5¹/₂
    elif kind == "super":
        names = f"{node.get('class') or ''} {node.get('role') or ''}"
        is_note = bool(_NOTE_CLASS.search(names)) or text[:1] in "[(（["
        result = superscript(text, before, ahead, is_note=is_note)
    else:
        result = text if before.endswith(("/", "⁄")) else subscript(text, before)
    if result.startswith("^"):  # without a space after its base
        if (previous := node.getprevious()) is not None:
            previous.tail = (previous.tail or "").rstrip()
        else:
            node.getparent().text = (node.getparent().text or "").rstrip()
    _replace_content(node, result)


def superscript(text: str, before: str, ahead: str = "", *, is_note: bool = False) -> str:
    """Format raised `text` for one line, given the text `before` and `ahead` of it in its paragraph.

    6 after 10 is `^6`, 2 after m `²`, 2 after 4500 or a word the note `[^2]`, 99 after $19 `.99`, rd after 3 `rd`.
    """
    notes = _format_notes(text)
    if is_note and notes:
        return notes
    if _SIGNED_NUMBER.fullmatch(text):
        return _format_raised_number(_unify_minus(text), before, ahead)
    if _MARK.fullmatch(text) or _SHORT_MARK.search(before[-3:] + text):
        return text
    is_base = re.search(r"(?:(?<!\w)[^\W_]{1,2}|[)\]}])$", before)
    if is_base and not (before[-1].isdigit() and text in _FIRST_LETTERS):  # notes are lettered from a
        return "^" + (_unify_minus(text) if _SIMPLE.fullmatch(text) else f"({text})")
    return notes or (f" {text}" if before[-1:].isalnum() and text[0].isalnum() else text)


def _unify_minus(number: str) -> str:
    return number.replace("−", "-").replace("–", "-")


def _format_raised_number(text: str, before: str, ahead: str) -> str:
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
    """Format lowered `text` for one line: after H, 2 is `₂`; after x, max is `_max`; after 1010, 2 is `_2`."""
    if _SIGNED_NUMBER.fullmatch(text) and not before[-1:].isdigit():
        return text.translate(_SUBSCRIPTS)
    if before[-1:].isalnum() or before.endswith((")", "]")):
        return "_" + (text if re.fullmatch(r"\w+", text) else f"({text})")
    return text


def get_text_before(node: Any) -> str:
    """Return the end of the text before `node` in its paragraph."""
    text = ""
    while len(text) < _LOOKBACK:
        previous = node.getprevious()
        if previous is not None:
            if previous.tag == "br" or previous.tag not in INLINE:
                text = (previous.tail or "")[-_LOOKBACK:] + text
                break
            text = previous.text_content()[-_LOOKBACK:] + (previous.tail or "")[-_LOOKBACK:] + text
            node = previous
        else:
            node = node.getparent()
            if node is None:
                break
            text = (node.text or "")[-_LOOKBACK:] + text
            if node.tag not in INLINE:
                break
    return " ".join(text[-_LOOKBACK:].split()) + (" " if text[-1:].isspace() else "")


def _replace_content(node: Any, text: str) -> None:
    """Replace the content of an element with `text`; what follows it stays."""
    for child in list(node):
        node.remove(child)
    node.text = text
    previous = node.getprevious()
    # Adjacent elements would get a space between them. Within text, the tag stays: some pages have very many.
    if not node.tail or (previous is not None and not previous.tail):
        node.drop_tag()


def _iter_base_pieces(node: Any) -> Iterator[str]:
    # If an end tag is missing, the next base is nested in the reading before it.
    is_reading = node.tag in _READINGS
    if not is_reading:
        yield node.text or ""
    for child in node:
        yield from _iter_base_pieces(child)
        if not is_reading:
            yield child.tail or ""


def _write_abbreviations(tree: Any) -> None:
    """Append the long form of each abbreviation to its first use, if its title attribute has one."""
    seen = set[str]()
    for node in islice(tree.iter("abbr", "acronym", "dfn"), _MAX_ABBREVIATIONS):
        short, long = clean_line(node.text_content()), clean_line(node.get("title") or "")
        if not short or short in seen:
            continue
        seen.add(short)
        context = (node.getparent().text_content() if node.getparent() is not None else "")[: 20 * _NEAR]
        is_longer = len(short) <= _MAX_SHORT and len(short) < len(long) <= _MAX_TITLE
        if is_longer and _LETTER.search(short) and _LETTER.search(long) and long.lower() not in context.lower():
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
        return
    # A check box that a form submits is a question, not a state.
    is_sent = node.get("disabled") is None and (node.get("name") or node.get("value"))
    if not is_sent and any(above.tag in _BOX_PLACES for above in node.iterancestors()):
        box = node.makeelement("span")
        box.text, box.tail = mark, " " + (node.tail or "").lstrip()
        node.getparent().replace(node, box)


def _read_icon_class(cell: Any) -> str:
    """Return the mark that a style sheet draws in a cell with one empty element, by the element's class."""
    classes = [node.get("class") or "" for node in cell.iterdescendants() if not len(node)]
    if len(classes) != 1:
        return ""
    return "✓" if _TICK.search(classes[0]) else "✗" if _CROSS.search(classes[0]) else ""


def _iter_icon_labels(cell: Any, elements: Mapping[str, Any]) -> Iterator[str]:
    """Yield the labels of pictures and icons in a cell without text; `elements` are the page's, by id."""
    for node in cell.iter():
        if node.tag == "title" or (node.tag == "desc" and node.getprevious() is None):
            yield clean_line(node.text_content())
            continue
        # The label of a link or a button is its action; that of a picture in it is its content.
        elements_around = takewhile(lambda above: above is not cell, (node, *node.iterancestors()))
        is_control = node.tag not in ("img", "svg") and any(above.tag in ("a", "button") for above in elements_around)
        text = "" if is_control else next((node.get(name) for name in _LABELS if (node.get(name) or "").strip()), "")
        if not text and not is_control:
            labels = map(elements.get, (node.get("aria-labelledby") or "").split())
            text = " ".join(label.text_content() for label in labels if label is not None)
        if text:
            yield clean_line(text)
