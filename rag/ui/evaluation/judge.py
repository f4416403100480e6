"""Statements that were judged, for a person to judge as well, and how well the two agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

import streamlit as st

from rag.evaluation.evaluation import Side
from rag.evaluation.judge import ENOUGH
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape, escape_line
from rag.ui.kit.parts import data_table
from rag.ui.kit.session import evaluation_of
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.judge import Agreement, Label
    from rag.types import CheckedBy, Verdict

_VERDICTS: tuple[Verdict, ...] = ("supported", "partly", "unsupported")
_SHOWN = 3


def draw_judge(app: App, library: str, language: Language) -> None:
    st.markdown(label("judge_lead", language))
    _draw_agreement(evaluation_of(app).agreement(library), language)
    waiting = evaluation_of(app).labels(library)
    if waiting:
        _draw_label(app, waiting, language)
    else:
        _draw_queue(app, library, language)


def _draw_agreement(agreed: Mapping[CheckedBy, Agreement], language: Language) -> None:
    """Of each that judged; how many labels a model still wants before its figures are shown."""
    model = agreed.get("model")
    if model is None or not model.enough:
        st.caption(label("judge_few", language, count=model.n if model else 0, enough=ENOUGH))
    rows = [
        {
            "by": label(f"checked_by_{by}", language),
            "n": found.n,
            "kappa": _told(found.kappa.value),
            "interval": "–" if isnan(found.kappa.low) else f"{found.kappa.low:.2f} – {found.kappa.high:.2f}",
            **{verdict: _told(found.f1.get(verdict, nan)) for verdict in _VERDICTS},
        }
        for by, found in agreed.items()
    ]
    f1 = [(str(verdict), f"F1, {label(f'judge_{verdict}', language)}") for verdict in _VERDICTS]
    named = {name: label(f"judge_{name}", language) for name in ("by", "n", "kappa")}
    if rows:
        named |= {"interval": label("figure_interval", language), **dict(f1)}
        data_table(rows, column_config=named, hide_index=True)


def _told(value: float) -> str:
    """Of what only ever says one thing there is no figure."""
    return "–" if isnan(value) else f"{value:.2f}"


def _draw_queue(app: App, library: str, language: Language) -> None:
    runs = [run for run in evaluation_of(app).runs.runs(library) if run.state == "done"]
    if not runs:
        st.info(label("judge_no_runs", language), icon=":material/gavel:")
        return
    sides = {f"{run.name} · {one.name}": Side(run.id, one.name) for run in runs for one in run.settings}
    chosen = st.selectbox(label("judge_of", language), list(sides), key="judge-run")
    if st.button(label("judge_fetch", language), type="primary", key="judge-fetch"):
        attempt(lambda: evaluation_of(app).queue(sides[chosen]))
        st.rerun()


def _draw_label(app: App, waiting: Sequence[Label], language: Language) -> None:
    """One statement with its passages; the judge's verdict is hidden until the person's is saved."""
    one = waiting[0]
    st.caption(label("judge_waiting", language, count=len(waiting)))
    with st.container(border=True, key=f"label-{one.id}"):
        st.caption(escape_line(one.question))
        st.markdown(f"**{escape_line(one.statement)}**")
        for text in one.passages[:_SHOWN]:
            with st.container(border=True):
                st.markdown(escape(text))
        with st.container(horizontal=True, key="verdicts"):
            for verdict in _VERDICTS:
                told = label(f"judge_{verdict}", language)
                st.button(told, key=f"verdict-{verdict}", on_click=evaluation_of(app).label, args=(one.id, verdict))
