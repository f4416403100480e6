"""One question under two settings: both answers, their passages, and their metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.ui.evaluation.runs import draw_setting_choice, setting_name
from rag.ui.evaluation.sets import case_from_form
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import data_table, metric_name
from rag.ui.kit.render import answer_markdown
from rag.ui.kit.session import evaluation_of, person_id, session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.cases import Case
    from rag.evaluation.runs import RowView

_METRICS = ("recall@4000", "all@4000", "context_precision", "context_recall", "faithfulness", "answer_correctness")
_AFTER = ("token_f1", "calls", "searches", "seconds")
_PASSAGES, _PREVIEW, _LONGEST = 5, 300, 2_000


def draw_side_by_side(app: App, library: str, language: Language) -> None:
    with st.form("beside-form", border=False):
        question = st.text_input(label("case_question", language), key="beside-question", max_chars=_LONGEST)
        answer = st.text_input(label("beside_answer", language), key="beside-answer", max_chars=_LONGEST)
        quote = st.text_area(label("case_quote", language), key="beside-quote", height=70)
        left, right = st.columns(2)
        with left:
            first = draw_setting_choice("beside-first", language, mode="classic")
        with right:
            second = draw_setting_choice("beside-second", language)
        submitted = st.form_submit_button(label("beside_ask", language), type="primary", key="beside-ask")
    if submitted and (case := case_from_form(question, answer, quote)):
        rows: list[RowView] = []
        options: dict[str, Any] = {"person": person_id(), "chat": session().chat}
        with st.spinner(label("beside_asking", language)):
            side_by_side = partial(evaluation_of(app).side_by_side, library, case, [first, second], **options)
            attempt(lambda: rows.extend(side_by_side()))
        st.session_state["beside"] = (case, rows)
    if stored := st.session_state.get("beside"):
        case, rows = stored
        draw_answers(case, rows, language)


def draw_answers(case: Case, rows: Sequence[RowView], language: Language) -> None:
    """Draw the answers in columns."""
    st.markdown(f"**{escape_line(case.question)}**")
    if case.answers:
        st.caption(label("beside_expected", language, answers=escape_line(" · ".join(case.answers))))
    for column, (place, row) in zip(st.columns(len(rows) or 1), enumerate(rows), strict=False):
        with column, st.container(border=True, key=f"beside-{place}-{case.id}"):
            _draw_answer(row, language)


def _draw_answer(row: RowView, language: Language) -> None:
    outcome = label(f"outcome_{row.answer.outcome}", language)
    st.markdown(f"**{escape_line(setting_name(row.setting, language))}** :gray[{outcome}]")
    if row.answer.text:
        st.markdown(answer_markdown(row.answer.text), anchors=False)
    scores = [(metric_name(name, language), row.scores.get(name)) for name in (*_METRICS, *_AFTER)]
    rows = [{"metric": name, "value": round(value, 3)} for name, value in scores if value is not None]
    columns = {name: label(f"figure_{name}", language) for name in ("metric", "value")}
    data_table(rows, column_config=columns, hide_index=True)
    with st.expander(label("beside_passages", language, count=len(row.answer.passages)), type="compact"):
        for passage in row.answer.passages[:_PASSAGES]:
            st.caption(
                f"**{escape_line(passage.title or passage.url)}**  \n{escape_line(shorten(passage.text, _PREVIEW))}"
            )
