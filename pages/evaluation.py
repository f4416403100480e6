"""Evaluation: question sets, runs, comparisons, judge labels, and one question under two settings."""

from __future__ import annotations

import streamlit as st

from rag.locales import label
from rag.ui.evaluation.compare import draw_compare, draw_side_by_side
from rag.ui.evaluation.judge import draw_judge
from rag.ui.evaluation.runs import draw_runs
from rag.ui.evaluation.sets import draw_sets
from rag.ui.kit.navigation import current_language
from rag.ui.kit.parts import draw_page_head, draw_switch
from rag.ui.kit.session import current_library, set_param
from rag.ui.shell import open_app

_VIEWS = {
    "sets": draw_sets,
    "runs": draw_runs,
    "compare": draw_compare,
    "judge": draw_judge,
    "beside": draw_side_by_side,
}


def draw() -> None:
    language = current_language()
    draw_page_head(label("evaluation_title", language), label("evaluation_lead", language))
    app = open_app(language)
    library = current_library(app)
    requested = st.query_params.get("view", "sets")
    st.session_state["evaluation-view"] = requested if requested in _VIEWS else "sets"
    title, key = label("evaluation_view", language), "evaluation-view"
    view = draw_switch(title, list(_VIEWS), "evaluation_", key, language, on_change=_store_view)
    _VIEWS[view](app, library, language)


def _store_view() -> None:
    set_param("view", st.session_state["evaluation-view"])


draw()
