"""Build the font of the app's icons, a twentieth of the one that Streamlit ships (Material Symbols).

    python3 -m venv /tmp/fonts && /tmp/fonts/bin/pip install fonttools brotli
    /tmp/fonts/bin/python scripts/icons.py

Run it when a test reports a missing icon, or after an upgrade of Streamlit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "rag" / "ui" / "static"
FONT, NAMES = STATIC / "icons.woff2", STATIC / "icons.txt"
_MATERIAL = re.compile(r"\bmaterial/([a-z0-9_]+)")
_WORD = re.compile(r'"([a-z0-9_]{2,})"')  # an icon alone, or any other word that looks like one


def used_names() -> set[str]:
    """Return the names in the app's code and texts and in Streamlit's scripts, and other words."""
    ours = [file for kind in ("py", "toml", "js") for file in (ROOT / "rag").rglob(f"*.{kind}")]
    files = [*ours, *(ROOT / "pages").rglob("*.py"), *streamlit_static().glob("js/*.js")]
    names = {name for file in files for name in _MATERIAL.findall(file.read_text(encoding="utf-8"))}
    screens = (ROOT / "rag" / "ui").rglob("*.py")
    return names.union(*(_WORD.findall(file.read_text(encoding="utf-8")) for file in screens))


def streamlit_static() -> Path:
    """Return the folder of the files that Streamlit serves."""
    return next(ROOT.glob(".venv/lib/python*/site-packages/streamlit/static/static"))


def main() -> None:
    from fontTools import subset  # type: ignore[import-not-found]

    source = next(streamlit_static().glob("media/MaterialSymbols-Rounded.*.woff2"))
    options = subset.Options(flavor="woff2", layout_closure=False, layout_features=["rlig"])
    font = subset.load_font(str(source), options)
    letters = {glyph: chr(code) for code, glyph in font.getBestCmap().items()}
    icons = dict(_ligatures(font, letters))
    names = sorted(used_names() & icons.keys())
    spelling_glyphs = {letter for letter, character in letters.items() if character in set("".join(names))}
    subsetter = subset.Subsetter(options)
    subsetter.populate(glyphs=[*(icons[name] for name in names), *spelling_glyphs])
    subsetter.subset(font)
    subset.save_font(font, str(FONT), options)
    NAMES.write_text("\n".join(names) + "\n", encoding="utf-8")


def _ligatures(font: Any, letters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name that the font draws as one icon, with that icon's glyph."""
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in (one.ExtSubTable for one in lookup.SubTable):
            for first, ligatures in getattr(table, "ligatures", {}).items():
                for one in ligatures:
                    yield "".join(letters[glyph] for glyph in (first, *one.Component)), one.LigGlyph


if __name__ == "__main__":
    main()
