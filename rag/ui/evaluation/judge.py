"""Human labels for judged statements, and the agreement between judge and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

import streamlit as st

from rag.evaluation.evaluation import Side
from rag.evaluation.judge import MIN_LABELS
from rag.locales import Language, label
from rag.ui.evaluation.runs import side_name
from rag.ui.kit.actions import attempt_and_rerun
from rag.ui.kit.markdown import escape, escape_line
from rag.ui.kit.parts import draw_table
from rag.ui.kit.session import evaluation_of

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.judge import Agreement, Label
    from rag.types import CheckedBy, Verdict

_VERDICTS: tuple[Verdict, ...] = ("supported", "partly", "unsupported")
_LIMIT = 3


def draw_judge(app: App, library: str, language: Language) -> None:
    st.markdown(label("judge_lead", language))
    _draw_agreement(evaluation_of(app).agreement(library), language)
    waiting = evaluation_of(app).labels(library)
    if waiting:
        _draw_label(app, waiting, language)
    else:
        _draw_queue(app, library, language)


def _draw_agreement(agreements: Mapping[CheckedBy, Agreement], language: Language) -> None:
    """Draw the agreement of each judge, and the number of labels needed before the model's scores are shown."""
    model = agreements.get("model")
    if model is None or not model.is_sufficient:
        st.caption(label("judge_few", language, count=model.n if model else 0, enough=MIN_LABELS))
    rows = [
        {
            "by": label(f"checked_by_{by}", language),
            "n": entry.n,
            "kappa": _format(entry.kappa.value),
            "interval": "–" if isnan(entry.kappa.low) else f"{entry.kappa.low:.2f} – {entry.kappa.high:.2f}",
            **{verdict: _format(entry.f1.get(verdict, nan)) for verdict in _VERDICTS},
        }
        for by, entry in agreements.items()
    ]
    f1 = [(str(verdict), f"F1, {label(f'judge_{verdict}', language)}") for verdict in _VERDICTS]
    columns = {name: label(f"judge_{name}", language) for name in ("by", "n", "kappa")}
    if rows:
        columns |= {"interval": label("figure_interval", language), **dict(f1)}
        draw_table(rows, column_config=columns, hide_index=True)


def _format(value: float) -> str:
    """Return a value as text; it is NaN, shown as a dash, if a judge always gives the same verdict."""
    return "–" if isnan(value) else f"{value:.2f}"


def _draw_queue(app: App, library: str, language: Language) -> None:
    runs = [run for run in evaluation_of(app).runs.runs(library) if run.state == "done"]
    if not runs:
        st.info(label("judge_no_runs", language), icon=":material/gavel:")
        return
    names = {
        Side(run.id, setting.name): side_name(run, setting.name, language) for run in runs for setting in run.settings
    }
    side = st.selectbox(label("judge_of", language), list(names), key="judge-run", format_func=names.__getitem__)
    if st.button(label("judge_fetch", language), type="primary", key="judge-fetch"):
        attempt_and_rerun(lambda: evaluation_of(app).queue_labels(side))


def _draw_label(app: App, waiting: Sequence[Label], language: Language) -> None:
    """Draw a statement with its passages; the judge's verdict is not shown, so as not to bias the label."""
    item = waiting[0]
    st.caption(label("judge_waiting", language, count=len(waiting)))
    with st.container(border=True, key=f"label-{item.id}"):
        st.caption(escape_line(item.question))
        st.markdown(f"**{escape_line(item.statement)}**")
        for text in item.passages[:_LIMIT]:
            with st.container(border=True):
                st.markdown(escape(text))
        with st.container(horizontal=True, key="verdicts"):
            for verdict in _VERDICTS:
                text = label(f"judge_{verdict}", language)
                st.button(text, key=f"verdict-{verdict}", on_click=evaluation_of(app).label, args=(item.id, verdict))
