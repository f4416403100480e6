"""A page's tree as a reader has it: what is drawn, or comes with a click, and in words what only its markup says."""

from __future__ import annotations

from typing import Any, Final

from rag.reading.extraction.formulas import write_formulas
from rag.reading.extraction.grid import name_table_parts
from rag.reading.extraction.listings import write_listings
from rag.reading.extraction.notation import mark_struck, write_notation
from rag.reading.extraction.panels import name_panels, open_panels
from rag.reading.extraction.visible import drop, find_hidden, is_hidden

# A tree is looked through only for what its source may hold: most pages have none of it.
_GRIDS: Final = ("columnheader", "gridcell", '="cell"', "role=cell")
_STRUCK: Final = ("line-through", "strike", "deletion")
_FORMULAS: Final = ("math", "athJax", "katex", "latex", 'alt="$', 'alt="\\(')
_TABS: Final = ("tabpanel", "tab-", "tabs", "tabcontent", "tabbed")
_LISTINGS: Final = ("<pre", "<PRE", "<code", "white-space", "blob-code", "syntaxhighlighter")


def make_reader_view(tree: Any, source: str) -> None:
    """Change `tree`, an lxml tree of `source` with its scripts, into that."""

    def has(signs: tuple[str, ...]) -> bool:
        return any(sign in source for sign in signs)

    if has(_GRIDS):
        name_table_parts(tree)
    if has(_STRUCK):
        mark_struck(tree)
    if has(_FORMULAS):
        write_formulas(tree)  # some are hidden beside their picture, some are scripts
    hidden = find_hidden(tree)
    open_panels(tree, hidden)
    if has(_TABS):
        name_panels(tree)
    for node in hidden:
        if is_hidden(node):
            drop(node)
    if has(_LISTINGS):
        write_listings(tree)
    write_notation(tree, source)
