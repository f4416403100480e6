"""Notebooks: texts, code and what it printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag.errors import IngestError
from rag.reading.notebook import read_notebook


def text_of(*cells: dict[str, Any], **more: Any) -> str:
    return read_notebook(json.dumps({"cells": cells, **more}).encode(), "x.ipynb").text


def code(source: object, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": outputs}


def test_texts_and_code() -> None:
    cells = ({"cell_type": "markdown", "source": ["# Depth\n", "See [x](y)."]}, code(["a = 1\n", "a"]), code(" "))
    assert (
        text_of(*cells, metadata={"language_info": {"name": "julia"}}) == "# Depth\nSee x.\n\n```julia\na = 1\na\n```"
    )


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"output_type": "stream", "text": ["1\n", "2\n"]}, "```\n1\n2\n```"),
        ({"data": {"text/plain": "7", "image/png": "iVBO"}}, "```\n7\n```"),
        ({"data": {"text/plain": "x", "text/markdown": "**7** [m](u)"}}, "**7** m"),
        ({"data": {"text/plain": "x", "text/latex": "$x^2$"}}, "$x^2$"),
        (
            {
                "data": {
                    "text/plain": "x",
                    "text/html": ["<table><tr><th></th><th>a</th></tr>", "<tr><td>0</td><td></td></tr></table>"],
                }
            },
            "|  | a |\n|---|---|\n| 0 |  |",
        ),
        ({"data": {"text/plain": "<Plot>", "text/html": "<div id=plot></div>"}}, "```\n<Plot>\n```"),
        ({"ename": "ValueError", "evalue": "no", "traceback": ["\x1b[31m"]}, "```\nValueError: no\n```"),
    ],
)
def test_what_code_printed(output: dict[str, Any], text: str) -> None:
    assert text_of(code("f()", output)) == f"```\nf()\n```\n\n{text}"


def test_format_3() -> None:
    sheet = {"cells": [{"cell_type": "heading", "level": 2, "source": "Depth"}, {"cell_type": "code", "input": "1"}]}
    assert text_of(worksheets=[sheet]) == "## Depth\n\n```\n1\n```"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "office_broken"),
        (b"[]", "office_broken"),
        (b'{"cells": [1]}', "office_broken"),
        (b'{"cells": []}', "document_no_text"),
    ],
)
def test_what_cannot_be_read(body: bytes, code: str) -> None:
    with pytest.raises(IngestError) as raised:
        read_notebook(body, "x.ipynb")
    assert raised.value.code == code
