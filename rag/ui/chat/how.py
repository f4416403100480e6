"""“How this was answered”: tree or plan, steps and passages in one expander."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Answer
from rag.ui.chat.research import draw_plan, plan_head
from rag.ui.chat.search_explanation import draw_searches
from rag.ui.chat.tree import draw_tree, tree_head
from rag.ui.chat.tree_branch import draw_comparison, related_turns, tree_anchor
from rag.ui.chat.usage import usage_parts
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label
from rag.ui.kit.trace import draw_steps, steps_head

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView


def draw_how(
    app: App, library: str, turn: TurnView, answer: Answer, turns: Sequence[TurnView], language: Language
) -> None:
    """Draw one line under an answer; clicks inside it redraw nothing else of the page."""
    st.fragment(_draw_how)(app, library, turn, answer, language)
    if "tree" in answer.trail:
        # Static markup with an id made of letters and digits only.
        st.html(f'<span class="place" id="{tree_anchor(turn.id)}"></span>')
        st.fragment(draw_comparison)(turn, answer, related_turns(turn, turns), language)


def _draw_how(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    views = _views(app, library, turn, answer, language)
    if not views:
        return
    head = [tree_head(answer, language), plan_head(answer, language), steps_head(answer, language)]
    head += usage_parts(answer.usage, language)
    title = " · ".join([label("how", language), *filter(None, head)])
    panel = st.expander(title, key=f"how-{turn.id}", icon=":material/route:", type="compact", on_change="rerun")
    if panel.open:
        with panel:
            for tab, draw in zip(st.tabs([label(name, language) for name in views]), views.values(), strict=True):
                with tab:
                    draw()


def _views(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> dict[str, Callable[[], None]]:
    """Return the available views by the labels of their tabs."""
    views: dict[str, Callable[[], None]] = {}
    if answer.trail.get("tree"):
        views["how_tree"] = partial(draw_tree, app, library, turn, answer, language)
    elif answer.trail:
        views["how_plan"] = partial(draw_plan, answer, language, key=turn.id)
    if steps_head(answer, language):
        views["how_steps"] = partial(draw_steps, answer, turn.settings, language, key=turn.id)
    if answer.searches or turn.searches:
        recall = partial(app.conversations.searches, turn.id, session().owner)
        views["why_title"] = partial(draw_searches, answer, language, key=turn.id, recall=recall)
    return views
