"""Human labels for judged statements, and the agreement between judge and people."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan
from typing import TYPE_CHECKING

import streamlit as st

from rag.evaluation.agreement import MIN_LABELS
from rag.evaluation.evaluation import Side
from rag.locales import Language, label
from rag.ui.evaluation.runs import side_name
from rag.ui.kit.actions import attempt_and_rerun
from rag.ui.kit.markdown import escape, escape_line
from rag.ui.kit.parts import draw_table
from rag.ui.kit.session import evaluation_of

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.agreement import Agreement
    from rag.types import CheckedBy, Verdict

_VERDICTS: tuple[Verdict, ...] = ("supported", "partly", "unsupported")
_LIMIT = 3


def draw_judge(app: App, library: str, language: Language) -> None:
    """Draw the agreement of judges and people, then a statement to label or the choice of a run to label next."""
    evaluation = evaluation_of(app)
    st.markdown(label("judge_lead", language))
    _draw_agreement(evaluation.agreement(library), language)
    if waiting := evaluation.labels(library):
        item = waiting[0]
        st.caption(label("judge_waiting", language, count=len(waiting)))
        with st.container(border=True, key=f"label-{item.id}"):  # without the verdict, so as not to bias the label
            st.caption(escape_line(item.question))
            st.markdown(f"**{escape_line(item.statement)}**")
            for text in item.passages[:_LIMIT]:
                with st.container(border=True):
                    st.markdown(escape(text))
            with st.container(horizontal=True, key="verdicts"):
                for verdict in _VERDICTS:
                    text, args = label(f"judge_{verdict}", language), (item.id, verdict)
                    st.button(text, key=f"verdict-{verdict}", on_click=evaluation.label, args=args)
        return
    runs = [run for run in evaluation.runs.runs(library) if run.state == "done"]
    if not runs:
        st.info(label("judge_no_runs", language), icon=":material/gavel:")
        return
    names = {
        Side(run.id, setting.name): side_name(run, setting.name, language) for run in runs for setting in run.settings
    }
    side = st.selectbox(label("judge_of", language), list(names), key="judge-run", format_func=names.__getitem__)
    if st.button(label("judge_fetch", language), type="primary", key="judge-fetch"):
        attempt_and_rerun(lambda: evaluation.queue_labels(side))


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
