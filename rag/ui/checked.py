"""What is said about the check of an answer's statements: the line above it, and the marks within."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from rag.types import Answer, Statement
from rag.ui.render import Doubtful
from rag.ui.strings import Language, label

_AGAINST = ("numbers", "negation", "names", "direction", "quotation")


def counts(statements: Sequence[Statement]) -> tuple[int, int, int]:
    """How many are supported, supported in part, and there at all."""
    by_verdict = Counter(statement.verdict for statement in statements)
    return by_verdict["supported"], by_verdict["partly"], len(statements)


def head_line(answer: Answer, language: Language) -> str:
    """`5 of 6 statements supported`, or nothing where nothing was stated."""
    supported, partly, count = counts(answer.statements)
    if not count:
        return ""
    if count == supported == 1:
        return label("checked_all_one", language)
    line = label("checked_one" if count == 1 else "checked_many", language, supported=supported, count=count)
    return f"{line} · {label('checked_partly', language, count=partly)}" if partly else line


def draw_checked(answer: Answer, anchor: str, language: Language) -> None:
    """The line above an answer; the words at doubtful statements lead to it."""
    if line := head_line(answer, language):
        with st.container(key=f"checked-{anchor}"):
            # Static markup with ids made of letters and digits only.
            st.html("".join(f'<span class="place" id="{anchor}-{kind}"></span>' for kind in ("unsupported", "partly")))
            st.caption(line)


def doubtful(answer: Answer, language: Language) -> list[Doubtful]:
    """The statements that are not fully borne out, with what is shown at them."""
    return [
        Doubtful(
            one.start,
            one.end,
            label(f"doubt_{one.verdict}", language),
            label(_tip(one), language),
            one.verdict == "partly",
        )
        for one in answer.statements
        if one.verdict != "supported"
    ]


def _tip(statement: Statement) -> str:
    if statement.verdict == "partly":
        return "doubt_partly_tip"
    return "doubt_against_tip" if statement.reason in _AGAINST else "doubt_unsupported_tip"
