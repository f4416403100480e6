"""Content that appears after a click: panels of tabs, accordions, sections that find-in-page opens.

A part counts as visible if a visible control opens it, or if it is one of several panels. Only what
a click reveals is revealed here: text of no size, transparent or off screen stays hidden. Panels with the same text
for different systems get the names of their tabs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from rag.patterns import lazy_regex
from rag.reading.extraction.clean import clean_line
from rag.reading.extraction.segments import INLINE
from rag.reading.extraction.tree import by_id, hides

LABEL: Final = "data-panel-label"
"""The attribute of a paragraph with the name of the panel below it."""

_CONTROLS: Final = (
    "//*[@aria-controls or @data-bs-target or @data-target or @onclick]"
    "|//a[starts-with(@href,'#')]"
    "[@role='tab' or @data-toggle or @data-bs-toggle or ancestor::ul[contains(@class,'tab')]]"
)
_TABPANELS: Final = "//*[@role='tabpanel']"
_PANELS: Final = "//*[@role='tabpanel' or (@id and contains(@class,'tab'))]"
_CLOSED_STYLE = lazy_regex(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\s*(?:!\s*important)?\s*;?", re.IGNORECASE)
_OTHER_TAGS: Final = frozenset(["nav", "header", "footer", "menu", "dialog"])
_OTHER_ROLES: Final = frozenset(
    "navigation menu menubar banner contentinfo search dialog alertdialog listbox tooltip combobox".split()
)
_TOGGLES: Final = frozenset(["tab", "pill", "collapse"])
_QUOTED = lazy_regex(r"['\"]#?([\w:.-]{1,80})['\"]")
_RADIO_TABS: Final = "//*[count(input[@type='radio'])>1][contains(@class,'tab')]"
_MAX_LABEL = 60
_MAX_EXPANDERS = 3
_MAX_TEXTS = 8
_CONTAINERS: Final = frozenset(["div", "p", "section", "article"])


def open_panels(tree: Any, hidden: Sequence[Any]) -> None:
    """Reveal the `hidden` elements of `tree`, in their order, that a click reveals."""
    controls = _find_controls(tree) if hidden else {}
    panels = Counter(node.getparent() for node in tree.xpath(_TABPANELS)) if hidden else Counter[Any]()
    has_tabs = bool(panels) and bool(tree.xpath("//*[@role='tab']"))
    labels = by_id(tree) if any(node.get("aria-labelledby") for node in hidden) else {}
    for node in hidden:
        style = node.get("style") or ""
        is_closed = node.get("hidden") is not None or _CLOSED_STYLE.search(style)
        is_panel = node.get("role") == "tabpanel" and (has_tabs or panels[node.getparent()] > 1)
        label = labels.get(node.get("aria-labelledby") or "")
        is_opened = is_panel or _is_opened_by_click(node, controls) or (label is not None and _is_expander(label))
        if is_closed and is_opened and not _is_elsewhere(node):
            node.attrib.pop("hidden", None)
            node.set("style", _CLOSED_STYLE.sub("", style))


def name_panels(tree: Any) -> None:
    """Write the names of tabs in `tree` before their panels."""
    controls, panels = _find_controls(tree), tree.xpath(_PANELS)
    groups: dict[Any, list[Any]] = defaultdict(list)
    for panel in panels:
        if panel.get("role") == "tabpanel" or any(map(_is_tab, controls.get(panel.get("id"), ()))):
            groups[panel.getparent()].append(panel)
    elements = by_id(tree) if groups else {}
    for box, panels in groups.items():
        if len(panels) > 1:
            _write_labels(panels, _tab_names(box, panels, controls, elements))
    for box in tree.xpath(_RADIO_TABS):
        names = [_read_label(label) for label in box.xpath("./*/label")]
        if len(box) and len(box[-1]) == len(names):
            _write_labels(box[-1], names)


def _find_controls(tree: Any) -> Mapping[str, Sequence[Any]]:
    """Return the visible controls that can be clicked, by the ids of what they open."""
    controls: dict[str, list[Any]] = defaultdict(list)
    for node in tree.xpath(_CONTROLS):
        if not (names := _find_targets(node)) or (node.get("aria-haspopup") or "false") != "false":
            continue
        if _read_label(node) and not _is_closed(node) and not _is_elsewhere(node):
            for name in names:
                controls[name].append(node)
    return controls


def _find_targets(node: Any) -> list[str]:
    toggle = node.get("data-bs-toggle") or node.get("data-toggle") or ""
    if node.get("aria-controls") and (node.get("aria-expanded") or node.get("role") == "tab" or toggle in _TOGGLES):
        return str(node.get("aria-controls")).split()
    if toggle in _TOGGLES or _is_tab(node):
        target = node.get("data-bs-target") or node.get("data-target") or node.get("href") or ""
        if target.startswith("#"):
            return [target.removeprefix("#")]
    return _QUOTED.findall(node.get("onclick") or "")


def _is_tab(node: Any) -> bool:
    toggles = (node.get("data-bs-toggle"), node.get("data-toggle"))
    is_listed = node.tag == "a" and any("tab" in (above.get("class") or "") for above in node.iterancestors("ul"))
    is_named = bool(node.get("onclick")) and "tab" in (node.get("class") or "")
    return node.get("role") == "tab" or "tab" in toggles or "pill" in toggles or is_listed or is_named


def _is_opened_by_click(node: Any, controls: Mapping[str, Sequence[Any]]) -> bool:
    if (node.get("hidden") or "").strip().lower() == "until-found" or node.get("id") in controls:
        return True
    previous = None if node.get("role") == "tabpanel" else node.getprevious()
    return previous is not None and any(_is_expander(element) for element in islice(previous.iter(), _MAX_EXPANDERS))


def _is_expander(node: Any) -> bool:
    is_button = node.get("aria-expanded") and not node.get("aria-haspopup")
    return bool(is_button and _read_label(node) and not _is_closed(node) and not _is_elsewhere(node))


def _is_elsewhere(node: Any) -> bool:
    """True if a part belongs to a menu, a dialog or the like, or is within something hidden."""
    return node.tag == "form" or any(
        above.tag in _OTHER_TAGS or above.get("role") in _OTHER_ROLES or (above is not node and _is_closed(above))
        for above in (node, *node.iterancestors())
    )


def _is_closed(node: Any) -> bool:
    return node.get("hidden") is not None or hides(node.get("style") or "")


def _tab_names(
    box: Any, panels: Sequence[Any], controls: Mapping[str, Sequence[Any]], elements: Mapping[str, Any]
) -> list[str]:
    """Return the names of the tabs that open `panels`: by their references, else by their order."""
    names = [_panel_name(panel, controls, elements) for panel in panels]
    for above in () if all(names) else (box, *islice(box.iterancestors(), 2)):
        for tabs in above.xpath(".//*[@role='tablist']")[:1]:
            tab_nodes = tabs.xpath(".//*[@role='tab']") or list(tabs)
            if len(tab_nodes) == len(panels):
                return list(map(_read_label, tab_nodes))
    return names


def _panel_name(panel: Any, controls: Mapping[str, Sequence[Any]], elements: Mapping[str, Any]) -> str:
    for control in filter(_is_tab, controls.get(panel.get("id"), ())):
        return _read_label(control)
    label = elements.get(panel.get("aria-labelledby") or "")
    return clean_line(panel.get("aria-label") or "") if label is None else _read_label(label)


def _write_labels(panels: Sequence[Any], names: Sequence[str]) -> None:
    """Start each panel with its name: in its first sentence, else in a line before it."""
    for panel, name in zip(panels, names, strict=True):
        texts = [" ".join(text.split()) for text in islice(panel.itertext(), _MAX_TEXTS) if text.strip()]
        if not texts or not name or len(name) > _MAX_LABEL or texts[0].rstrip(":：").casefold() == name.casefold():
            continue
        label = name + ("：" if not name.isascii() and not name[-1:].isascii() else ":")
        first = panel
        while not (first.text or "").strip() and len(first) and (first[0].tag in _CONTAINERS or first[0].tag in INLINE):
            first = first[0]
        if (first.text or "").strip():
            first.text = f"{label} {first.text.lstrip()}"
            continue
        line = panel.makeelement("p")
        line.text = label
        line.set(LABEL, "")
        panel.insert(0, line)


def _read_label(node: Any) -> str:
    text = " ".join(islice(node.itertext(), _MAX_TEXTS))
    return clean_line(text) or clean_line(node.get("aria-label") or node.get("title") or "")
