"""Pairs of a statement and the page it cites: what the page contradicts is never supported, what it says always is."""

from __future__ import annotations

import pytest

from rag.agent.citing.comparing.reading import Reading
from rag.agent.citing.comparing.support import Finding
from rag.agent.citing.source import Said, Source
from rag.types import Passage
from tests.agent.citing.comparing import (
    borne_out_chinese,
    borne_out_english,
    contradicted_chinese,
    contradicted_english,
)


def found(statement: str, page: str) -> Finding:
    passage = Passage(
        id="1", url="https://example.org/a", url_hash="a", title="", site="", language="", section=(), text=page,
        start=0, end=len(page),
    )  # fmt: skip
    return Source(passage).best(Said(statement)).finding


@pytest.mark.parametrize(
    ("statement", "page"), [*contradicted_english.CONTRADICTED, *contradicted_chinese.CONTRADICTED]
)
def test_what_the_page_contradicts_is_not_supported(statement: str, page: str) -> None:
    finding = found(statement, page)
    assert finding.verdict != "supported", finding


@pytest.mark.parametrize(("statement", "page"), [*borne_out_english.BORNE_OUT, *borne_out_chinese.BORNE_OUT])
def test_what_the_page_says_is_supported(statement: str, page: str) -> None:
    finding = found(statement, page)
    assert finding.verdict == "supported", (finding, Reading(statement).tokens, Reading(page).tokens)
