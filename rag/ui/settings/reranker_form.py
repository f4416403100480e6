"""The reranker of the settings: compared on people's own questions before it is turned on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.ui.kit.attempt import attempt_here
from rag.ui.kit.escape import escape_line
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App


def draw_reranker(app: App, library: str, language: Language) -> None:
    """Draw the last comparison, a button that compares, and one that turns the reranker on or off.

    Nothing if no reranker is set.
    """
    reranking = app.models.reranking
    if reranking.offered is None:
        return
    st.markdown(f"## {label('settings_reranker', language)}", anchors=False)
    on, model = reranking.current is not None, escape_line(reranking.offered.name)
    st.markdown(label(f"reranker_{'on' if on else 'off'}", language, model=model))
    if comparison := reranking.comparison:
        _draw_figures(comparison, language)
    with st.container(horizontal=True):
        compare = st.button(label("reranker_compare", language), icon=":material/compare_arrows:", key="rerank-compare")
        switch = reranking.by_address and st.button(
            label(f"reranker_turn_{'off' if on else 'on'}", language),
            key="rerank-switch",
            disabled=not (on or comparison),
        )
    st.caption(label("reranker_compare_hint", language))
    with st.spinner(label("reranker_comparing", language)) if compare else st.container():
        done = compare and attempt_here(lambda: app.compare_reranker(library), language)
    if done or (switch and attempt_here(lambda: reranking.switch(not on), language)):
        st.rerun()


def _draw_figures(comparison: Mapping[str, Any], language: Language) -> None:
    by, low, high = comparison["difference"]
    figures = {
        "before": f"{comparison['before']:.3f}",
        "after": f"{comparison['after']:.3f}",
        "difference": f"{by:+.3f} ({low:+.3f} – {high:+.3f})",
        "verdict": label(f"verdict_{comparison['verdict']}", language),
    }
    st.markdown(label("reranker_compared", language, count=comparison["questions"], **figures))
