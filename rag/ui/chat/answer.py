"""An answer in any mode: its text, a line with its badge, checks and sources, how it was made, and next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from rag.graphs.modes import removal_notice, saving_notice
from rag.locales import say
from rag.retrieval.ledger import LEG
from rag.tools import describe_use
from rag.types import Answer, Outcome
from rag.ui.chat.asking import ask, ask_first
from rag.ui.chat.check_summary import doubtful, head_line
from rag.ui.chat.followup import draw_followup
from rag.ui.chat.how import draw_how
from rag.ui.chat.not_found import draw_not_found
from rag.ui.chat.research import draw_findings, draw_resume
from rag.ui.chat.tree_branch import draw_origin
from rag.ui.chat.turn_actions import draw_actions, draw_again, draw_suggestions
from rag.ui.chat.way import draw_removal, draw_route
from rag.ui.kit.answers import pages_now
from rag.ui.kit.choices import Scope
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.render import answer_markdown
from rag.ui.kit.session import session
from rag.ui.kit.sources import anchor_of, draw_line, tip
from rag.ui.kit.strings import LANGUAGES, Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "answered": ("green", "check_circle"),
    "caveat": ("orange", "info"),
    "not_in_pages": ("gray", "search_off"),
    "failed": ("red", "error"),
    "conversation": ("blue", "forum"),
}
_CLOSEST = frozenset({"closest", "in_doubt", "not_named"})
_MODEL_FAILED = "quoted_model_failed"
_LONGEST_WISH = 90
_CUT_OFF = frozenset({"run_stopped", "turn_interrupted", "run_too_long", "budget_seconds"})


def draw_answer(
    app: App,
    library: str,
    turn: TurnView,
    answer: Answer,
    language: Language,
    turns: Sequence[TurnView],
    *,
    newest: bool,
) -> None:
    if turn.route:
        draw_route(app, library, turn, turn.route, language)
    draw_followup(app, library, turn, answer, language)
    draw_origin(answer, language)
    draw_text(turn, answer, language)
    draw_removal(app, library, turn, language)
    draw_evidence(app, library, turn, answer, language)
    _draw_notices(turn, answer, _display_text(turn, answer, language), language)
    cut_off = _is_cut_off(turn, answer)
    if _notice_code(answer).startswith("summary_no_"):
        if newest:
            _draw_near(app, library, turn, answer, language)
    elif answer.outcome in ("not_in_pages", "caveat") and not cut_off:
        _draw_missing(app, library, turn, answer, language, newest=newest)
    draw_findings(app, library, answer, language, key=turn.id)
    draw_how(app, library, turn, answer, turns, language)
    draw_actions(app, library, turn, language)
    if newest:
        _draw_next(app, library, turn, answer, language, cut_off=cut_off)


def draw_text(turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw the answer with its citation marks."""
    text = _display_text(turn, answer, language)
    if text.strip():
        with st.container(key=f"answer-{turn.id}"):
            st.markdown(_answer_markdown(replace(answer, text=text), turn.id, language), anchors=False)


def draw_evidence(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw the badge of the answer, its checks and its sources."""
    _draw_doubts(answer, turn.id, language)
    parts = [_badge(turn, answer, language), head_line(answer, language)]
    draw_line(app, library, answer, turn.id, language, lead=parts, states=pages_now(app, library, turn))


def _draw_next(app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, cut_off: bool) -> None:
    if cut_off or answer.outcome == "failed" or _notice_code(answer) == _MODEL_FAILED:
        draw_again(app, library, turn, language)
        if turn.can_go_on:
            draw_resume(app, turn, language)
    else:
        draw_suggestions(app, library, turn, language)
    if answer.reasoner == "extractive" and answer.citations:
        _draw_connect_hint(language)


def _draw_doubts(answer: Answer, turn_id: str, language: Language) -> None:
    """Draw the targets of the words at doubtful statements: static markup, ids of letters and digits only."""
    if doubtful(answer, language):
        kinds = ("unsupported", "partly")
        st.html("".join(f'<span class="place" id="{anchor_of(turn_id)}-{kind}"></span>' for kind in kinds))


def _is_cut_off(turn: TurnView, answer: Answer) -> bool:
    """Return whether the answer ended before it was written and checked; it then has no badge."""
    return turn.state == "interrupted" or _notice_code(answer) in _CUT_OFF


def _notice_code(answer: Answer) -> str:
    return answer.notice.code if answer.notice else ""


def _badge(turn: TurnView, answer: Answer, language: Language) -> str:
    if answer.mode in ("save", "remove") and answer.outcome == "conversation":
        return ""
    if _is_cut_off(turn, answer):
        return f":gray[:material/pause_circle: {label('outcome_unfinished', language)}]"
    if answer.reasoner == "extractive" and _notice_code(answer) in _CLOSEST:
        return f":gray-badge[:material/format_quote: {label('outcome_closest', language)}]"
    color, icon = _OUTCOMES[answer.outcome]
    from_tools = answer.tools and not answer.citations and answer.outcome == "answered"
    outcome = "told" if from_tools else "quoted" if answer.quoted and answer.outcome == "answered" else answer.outcome
    return f":{color}-badge[:material/{icon}: {label(f'outcome_{outcome}', language)}]"


def _draw_notices(turn: TurnView, answer: Answer, text: str, language: Language) -> None:
    """Draw the notes on an answer, one sentence each."""
    lines = []
    for use in answer.tools:
        icon, line = "error" if use.failed else "build", describe_use(use, language, answer.text)
        if not line.endswith(f": {text.strip()}"):  # else it only repeats the answer
            lines.append(f":material/{icon}: {escape_line(line)}")
    if answer.notice and not _is_notice(answer):
        lines.append(escape_line(say(answer.notice, language)))
    if answer.passages and all(LEG in passage.ranks for passage in answer.passages):
        lines.append(f":material/inventory_2: {label('research_in_hand', language)}")
    if lines:
        st.caption("  \n".join(lines))
    code = _notice_code(answer)
    if (code == _MODEL_FAILED or code.startswith("chat_")) and st.button(
        label("chat_check", language), icon=":material/tune:", type="tertiary", key=f"model-{turn.id}"
    ):
        go("settings")


def _draw_missing(app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, newest: bool) -> None:
    """Draw the closest passages, the searches and, under the newest answer, next steps."""
    scope = Scope.from_plain(turn.settings.get("scope", {}))
    wish = draw_not_found(app, library, turn.id, scope, answer, language, offer=newest)
    if wish == "deep":
        ask(app, library, turn.question, "deep", standalone=answer.standalone)
    elif wish == "unfiltered":
        session().scope = session().scope.without_filters()
        ask(app, library, turn.question, standalone=answer.standalone)


def _draw_near(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw buttons that summarise one of the nearest pages instead, or all pages."""
    rows = answer.notice.params["pages"] if answer.notice else ()
    wishes = [label("near_page", language, title=row["title"]) for row in rows]
    with st.container(key=f"near-{turn.id}", gap="xsmall"):
        for place, wish in enumerate([*wishes, label("near_all", language)]):
            st.button(
                escape_line(shorten(wish, _LONGEST_WISH)),
                icon=":material/summarize:",
                key=f"near-{place}-{turn.id}",
                on_click=ask_first,
                args=(app, library, wish),
                kwargs={"route": "summarise"},
            )


def _display_text(turn: TurnView, answer: Answer, language: Language) -> str:
    """Return the text of an answer; messages of the app itself are in the language of the screen."""
    if answer.mode == "save" and answer.outcome == "conversation":
        return say(saving_notice(turn.route.get("saved")), language)
    if answer.mode == "remove" and answer.outcome == "conversation":
        return say(removal_notice(turn.route), language)
    return say(answer.notice, language) if answer.notice and _is_notice(answer) else answer.text


def _is_notice(answer: Answer) -> bool:
    """Return whether the text of an answer is its notice, in any language."""
    return answer.notice is not None and answer.text in (say(answer.notice, language) for language in LANGUAGES)


def _answer_markdown(answer: Answer, turn_id: str, language: Language) -> str:
    urls = {citation.url for citation in answer.citations} | {passage.url for passage in answer.passages}
    marks = {citation.n: tip(citation.quote) for citation in answer.citations}
    doubts = doubtful(answer, language)
    return answer_markdown(answer.text, urls=urls, marks=marks, anchor=anchor_of(turn_id), doubtful=doubts)


def _draw_connect_hint(language: Language) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="honest-line"):
        st.caption(label("chat_extractive", language), width="content")
        if st.button(label("chat_connect", language), type="tertiary", key="connect"):
            go("settings")
