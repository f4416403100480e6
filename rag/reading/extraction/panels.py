"""What is drawn after a click: panels of tabs, accordions, sections that a search of the page opens.

A part counts as shown where something that is drawn says that it opens it, or where it is one of several panels. Only
what a click undoes is undone here: text of no size, transparent or off the screen stays hidden. Panels that say the
same for different systems get the names of their tabs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from rag.reading.extraction.clean import clean_line
from rag.reading.extraction.segments import INLINE
from rag.reading.extraction.tree import by_id
from rag.reading.extraction.visible import hides

LABEL: Final = "data-panel-label"
"""The attribute of a paragraph that holds the name of the panel below it."""

_CONTROLS: Final = (
    "//*[@aria-controls or @data-bs-target or @data-target or @onclick]"
    "|//a[starts-with(@href,'#')]"
    "[@role='tab' or @data-toggle or @data-bs-toggle or ancestor::ul[contains(@class,'tab')]]"
)
_TABPANELS: Final = "//*[@role='tabpanel']"
_PANELS: Final = "//*[@role='tabpanel' or (@id and contains(@class,'tab'))]"
_CLOSED_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\s*(?:!\s*important)?\s*;?", re.IGNORECASE)
_ELSEWHERE: Final = frozenset(["nav", "header", "footer", "menu", "dialog"])
_OTHER_ROLES: Final = frozenset(
    "navigation menu menubar banner contentinfo search dialog alertdialog listbox tooltip combobox".split()
)
_TOGGLES: Final = frozenset(["tab", "pill", "collapse"])
_QUOTED = re.compile(r"['\"]#?([\w:.-]{1,80})['\"]")
_RADIO_TABS: Final = "//*[count(input[@type='radio'])>1][contains(@class,'tab')]"
_MAX_LABEL = 60
_ABOVE = 3
_LOOKED_AT = 8
_OPEN: Final = frozenset(["div", "p", "section", "article"])


def open_panels(tree: Any, hidden: Sequence[Any]) -> None:
    """Show what a click shows of the `hidden` elements of `tree`, in their order."""
    controls = _controls(tree) if hidden else {}
    panels = Counter(node.getparent() for node in tree.xpath(_TABPANELS)) if hidden else Counter[Any]()
    has_tabs = bool(panels) and bool(tree.xpath("//*[@role='tab']"))
    labels = by_id(tree) if any(node.get("aria-labelledby") for node in hidden) else {}
    for node in hidden:
        style = node.get("style") or ""
        is_closed = node.get("hidden") is not None or _CLOSED_STYLE.search(style)
        is_panel = node.get("role") == "tabpanel" and (has_tabs or panels[node.getparent()] > 1)
        label = labels.get(node.get("aria-labelledby") or "")
        is_opened = is_panel or _opens_by_click(node, controls) or (label is not None and _expands(label))
        if is_closed and is_opened and not _is_elsewhere(node):
            node.attrib.pop("hidden", None)
            node.set("style", _CLOSED_STYLE.sub("", style))


def name_panels(tree: Any) -> None:
    """Write the names of tabs in `tree` before what they open."""
    controls, panels = _controls(tree), tree.xpath(_PANELS)
    groups: dict[Any, list[Any]] = defaultdict(list)
    for panel in panels:
        if panel.get("role") == "tabpanel" or any(map(_is_tab, controls.get(panel.get("id"), ()))):
            groups[panel.getparent()].append(panel)
    named = by_id(tree) if groups else {}
    for box, panels in groups.items():
        if len(panels) > 1:
            _write_labels(panels, _names(box, panels, controls, named))
    for box in tree.xpath(_RADIO_TABS):
        names = [_words(label) for label in box.xpath("./*/label")]
        if len(box) and len(box[-1]) == len(names):
            _write_labels(box[-1], names)


def _controls(tree: Any) -> Mapping[str, Sequence[Any]]:
    """What a reader sees and may click, by the ids of what it opens."""
    found: dict[str, list[Any]] = defaultdict(list)
    for node in tree.xpath(_CONTROLS):
        if not (names := _targets(node)) or (node.get("aria-haspopup") or "false") != "false":
            continue
        if _words(node) and not _is_closed(node) and not _is_elsewhere(node):
            for name in names:
                found[name].append(node)
    return found


def _targets(node: Any) -> list[str]:
    toggle = node.get("data-bs-toggle") or node.get("data-toggle") or ""
    if node.get("aria-controls") and (node.get("aria-expanded") or node.get("role") == "tab" or toggle in _TOGGLES):
        return str(node.get("aria-controls")).split()
    if toggle in _TOGGLES or _is_tab(node):
        named = node.get("data-bs-target") or node.get("data-target") or node.get("href") or ""
        if named.startswith("#"):
            return [named.removeprefix("#")]
    return _QUOTED.findall(node.get("onclick") or "")


def _is_tab(node: Any) -> bool:
    toggles = (node.get("data-bs-toggle"), node.get("data-toggle"))
    is_listed = node.tag == "a" and any("tab" in (above.get("class") or "") for above in node.iterancestors("ul"))
    is_named = bool(node.get("onclick")) and "tab" in (node.get("class") or "")
    return node.get("role") == "tab" or "tab" in toggles or "pill" in toggles or is_listed or is_named


def _opens_by_click(node: Any, controls: Mapping[str, Sequence[Any]]) -> bool:
    if (node.get("hidden") or "").strip().lower() == "until-found" or node.get("id") in controls:
        return True
    previous = None if node.get("role") == "tabpanel" else node.getprevious()
    return previous is not None and any(_expands(one) for one in islice(previous.iter(), _ABOVE))


def _expands(node: Any) -> bool:
    is_button = node.get("aria-expanded") and not node.get("aria-haspopup")
    return bool(is_button and _words(node) and not _is_closed(node) and not _is_elsewhere(node))


def _is_elsewhere(node: Any) -> bool:
    """Whether a part belongs to a menu, a dialog or the like, or is hidden with what it is in."""
    return node.tag == "form" or any(
        above.tag in _ELSEWHERE or above.get("role") in _OTHER_ROLES or (above is not node and _is_closed(above))
        for above in (node, *node.iterancestors())
    )


def _is_closed(node: Any) -> bool:
    return node.get("hidden") is not None or hides(node.get("style") or "")


def _names(
    box: Any, panels: Sequence[Any], controls: Mapping[str, Sequence[Any]], named: Mapping[str, Any]
) -> list[str]:
    """The names of the tabs that open `panels`: by what refers to them, else by their order."""
    names = [_name(panel, controls, named) for panel in panels]
    for above in () if all(names) else (box, *islice(box.iterancestors(), 2)):
        for tabs in above.xpath(".//*[@role='tablist']")[:1]:
            listed = tabs.xpath(".//*[@role='tab']") or list(tabs)
            if len(listed) == len(panels):
                return list(map(_words, listed))
    return names


def _name(panel: Any, controls: Mapping[str, Sequence[Any]], named: Mapping[str, Any]) -> str:
    for control in filter(_is_tab, controls.get(panel.get("id"), ())):
        return _words(control)
    label = named.get(panel.get("aria-labelledby") or "")
    return clean_line(panel.get("aria-label") or "") if label is None else _words(label)


def _write_labels(panels: Sequence[Any], names: Sequence[str]) -> None:
    """Begin each panel with its name: in the sentence that it begins with, else in a line before."""
    for panel, name in zip(panels, names, strict=True):
        texts = [" ".join(text.split()) for text in islice(panel.itertext(), _LOOKED_AT) if text.strip()]
        if not texts or not name or len(name) > _MAX_LABEL or texts[0].rstrip(":：").casefold() == name.casefold():
            continue
        label = name + ("：" if not name.isascii() and not name[-1:].isascii() else ":")
        first = panel
        while not (first.text or "").strip() and len(first) and (first[0].tag in _OPEN or first[0].tag in INLINE):
            first = first[0]
        if (first.text or "").strip():
            first.text = f"{label} {first.text.lstrip()}"
            continue
        line = panel.makeelement("p")
        line.text = label
        line.set(LABEL, "")
        panel.insert(0, line)


def _words(node: Any) -> str:
    said = " ".join(islice(node.itertext(), _LOOKED_AT))
    return clean_line(said) or clean_line(node.get("aria-label") or node.get("title") or "")
