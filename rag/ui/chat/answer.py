"""An answer in any mode: text, badge, checks and sources, how it was made, closest passages, and next steps.

The wording of checks names the checker. For rule checks it says what was found, not what is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.graphs.modes import removal_notice, say_saving
from rag.locales import LANGUAGES, Language, label, say
from rag.retrieval.retriever import LEDGER_LEG
from rag.tools import describe_use
from rag.types import Answer, CheckedBy, Outcome, Statement
from rag.ui.chat.asking import ask, start_answer
from rag.ui.chat.filters import chips_of, titles_of
from rag.ui.chat.research import draw_findings, draw_plan, draw_resume, plan_summary
from rag.ui.chat.route import draw_page_removal, draw_route
from rag.ui.chat.search_explanation import draw_searches, note_lines
from rag.ui.chat.tree import draw_comparison, draw_origin, draw_tree, tree_anchor, tree_summary
from rag.ui.chat.turn_actions import draw_actions, draw_again, draw_followup, draw_suggestions
from rag.ui.kit.markdown import Doubt, answer_markdown, escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button
from rag.ui.kit.runs import draw_steps, steps_summary, usage_parts
from rag.ui.kit.session import Scope, chat_in_use, session
from rag.ui.kit.sources import anchor_of, draw_passage, draw_source_line, pages_now, tooltip_text

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
_LONGEST_REQUEST = 90
_CUT_OFF = frozenset({"run_stopped", "turn_interrupted", "run_too_long", "budget_seconds"})
_TIPS = ("numbers", "negation", "clause", "language")
_NEAREST = 3
_LONGEST_QUERY = 120


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
    draw_page_removal(app, library, turn, language)
    draw_evidence(app, library, turn, answer, language)
    _draw_notices(turn, answer, _display_text(turn, answer, language), language)
    cut_off = _is_cut_off(turn, answer)
    if _notice_code(answer).startswith("summary_no_"):
        if newest:
            _draw_nearest_pages(app, library, turn, answer, language)
    elif answer.outcome in ("not_in_pages", "caveat") and not cut_off:
        _draw_missing(app, library, turn, answer, language, newest=newest)
    draw_findings(app, library, answer, language, key=turn.id)
    _draw_how(app, library, turn, answer, language)
    if "tree" in answer.trail:
        # Static markup, with an id of letters, digits and hyphens only.
        st.html(f'<span class="place" id="{tree_anchor(turn.id)}"></span>')
        draw_comparison(turn, answer, turns, language)
    draw_actions(app, library, turn, language)
    if newest:
        _draw_next(app, library, turn, answer, language, cut_off=cut_off)


def draw_text(turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw the answer with its citation marks."""
    text = _display_text(turn, answer, language)
    if text.strip():
        with st.container(key=f"answer-{turn.id}"):
            urls = {citation.url for citation in answer.citations} | {passage.url for passage in answer.passages}
            marks = {citation.n: tooltip_text(citation.quote) for citation in answer.citations}
            anchor, doubts = anchor_of(turn.id), doubts_of(answer, language)
            st.markdown(answer_markdown(text, urls=urls, marks=marks, anchor=anchor, doubts=doubts), anchors=False)


def draw_evidence(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw the badge of the answer, its checks and its sources."""
    if doubts_of(answer, language):  # targets of the words after them: static markup, ids of letters, digits, hyphens
        kinds = ("unsupported", "partly")
        st.html("".join(f'<span class="place" id="{anchor_of(turn.id)}-{kind}"></span>' for kind in kinds))
    parts = [_badge(turn, answer, language), check_summary(answer, language)]
    draw_source_line(app, library, answer, turn.id, language, lead=parts, states=pages_now(app, library, turn))


def _draw_next(app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, cut_off: bool) -> None:
    if cut_off or answer.outcome == "failed" or _notice_code(answer) == _MODEL_FAILED:
        draw_again(app, library, turn, language)
        if turn.can_resume:
            draw_resume(app, turn, language)
    else:
        draw_suggestions(app, library, turn, language)
    if answer.reasoner == "extractive" and answer.citations:
        with st.container(horizontal=True, vertical_alignment="center", key="honest-line"):
            st.caption(label("chat_extractive", language), width="content")
            if st.button(label("chat_connect", language), type="tertiary", key="connect"):
                go("settings")


def _is_cut_off(turn: TurnView, answer: Answer) -> bool:
    """Return whether the run ended before the answer was written and checked; its badge then is “unfinished”."""
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
    lines = []
    for use in answer.tools:
        icon, line = "error" if use.failed else "build", describe_use(use, language, answer.text)
        if not line.endswith(f": {text.strip()}"):  # otherwise it only repeats the answer
            lines.append(f":material/{icon}: {escape_line(line)}")
    if answer.notice and not _is_notice(answer):
        lines.append(escape_line(say(answer.notice, language)))
    if answer.passages and all(LEDGER_LEG in passage.ranks for passage in answer.passages):
        lines.append(f":material/inventory_2: {label('research_in_hand', language)}")
    if lines:
        st.caption("  \n".join(lines))
    code = _notice_code(answer)
    failed, text = code == _MODEL_FAILED or code.startswith("chat_"), label("chat_check", language)
    if failed and draw_button(text, "tune", f"model-{turn.id}", type="tertiary"):
        go("settings")


def _draw_missing(app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, newest: bool) -> None:
    """Draw the closest passages, the searches and, under the newest answer, next steps."""
    scope = Scope.from_json(turn.settings.get("scope", {}))
    candidates = [hit.passage for search in answer.searches for hit in search.candidates[:_NEAREST]]
    nearest = {passage.id: passage for passage in answer.passages or candidates}
    if nearest and not answer.citations:
        st.markdown(f"## {label('nearest', language)}", anchors=False)
        for place, passage in enumerate([*nearest.values()][:_NEAREST], start=1):
            draw_passage(app, library, passage, answer.question, language, key=f"{turn.id}-p{place}")
    queries = [search.question for search in answer.searches]
    queries = queries or [str(query) for step in answer.steps for query in step.detail.get("queries") or ()]
    lines = []
    if any(query.split() != answer.question.split() for query in queries):
        texts = (f"“{escape_line(shorten(query, _LONGEST_QUERY))}”" for query in dict.fromkeys(queries))
        lines.append(f":gray[{label('missing_searched', language)}] {' · '.join(texts)}")
    if scope.filter_count:
        chips = chips_of(scope.filters_only(), titles_of(app, library, scope), language)
        text = " · ".join(escape_line(chip.text) for chip in chips)
        lines.append(f":gray[{label('missing_scope', language)}] {text}")
    notes = [note_lines({"scope": search.notes.get("scope")}, language) for search in answer.searches]
    lines += dict.fromkeys(line for note in notes for line in note)
    with st.container(key=f"missing-{turn.id}"):
        if lines:
            st.markdown("  \n".join(lines))
        if newest:
            _draw_offers(app, library, turn, scope, answer, language)


def _draw_offers(app: App, library: str, turn: TurnView, scope: Scope, answer: Answer, language: Language) -> None:
    again = partial(ask, app, library, turn.question, standalone=answer.standalone)

    def offer(name: str, icon: str) -> bool:
        return draw_button(label(f"missing_{name}", language), icon, f"next-{name}-{turn.id}")

    with st.container(horizontal=True, key=f"next-{turn.id}", gap="small"):
        if scope.filter_count and offer("unfilter", "filter_list_off"):
            session().scope = session().scope.without_filters()
            again()
        deeper = answer.mode == "fast" and chat_in_use(app) is not None  # without a model, Deep answers like Fast
        if deeper and offer("deep", "manage_search"):
            again(mode="deep")
        if offer("add", "add"):
            go("add")
        is_empty = answer.notice is not None and answer.notice.code == "no_pages"
        if not is_empty and offer("see", "search"):
            go("search", find=answer.standalone or answer.question)


def _draw_nearest_pages(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw buttons that summarise one of the nearest pages instead, or all pages."""
    rows = answer.notice.params["pages"] if answer.notice else ()
    requests = [label("near_page", language, title=row["title"]) for row in rows]
    with st.container(key=f"near-{turn.id}", gap="xsmall"):
        for place, request in enumerate([*requests, label("near_all", language)]):
            text, summarise = escape_line(shorten(request, _LONGEST_REQUEST)), partial(start_answer, route="summarise")
            draw_button(text, "summarize", f"near-{place}-{turn.id}", summarise, app, library, request)


def _display_text(turn: TurnView, answer: Answer, language: Language) -> str:
    """Return the text of an answer; messages from the app are in the UI language."""
    if answer.mode == "save" and answer.outcome == "conversation":
        return say_saving(turn.route.get("saved"), language)
    if answer.mode == "remove" and answer.outcome == "conversation":
        return say(removal_notice(turn.route), language)
    return say(answer.notice, language) if answer.notice and _is_notice(answer) else answer.text


def _is_notice(answer: Answer) -> bool:
    """Return whether the text of an answer is its notice, in any language."""
    return answer.notice is not None and answer.text in (say(answer.notice, language) for language in LANGUAGES)


@st.fragment
def _draw_how(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw the panel on how an answer was made; clicks inside it redraw nothing else."""
    views: dict[str, Callable[[], None]] = {}  # by the labels of their tabs
    if answer.trail.get("tree"):
        views["how_tree"] = partial(draw_tree, app, library, turn, answer, language)
    elif answer.trail:
        views["how_plan"] = partial(draw_plan, answer, language, key=turn.id)
    if steps := steps_summary(answer, language):
        views["how_steps"] = partial(draw_steps, answer, turn.settings, language, key=turn.id)
    if answer.searches or turn.searches:
        recall = partial(app.conversations.searches, turn.id, session().owner)
        views["why_title"] = partial(draw_searches, answer, language, key=turn.id, recall=recall)
    if not views:
        return
    head = [tree_summary(answer, language), plan_summary(answer, language), steps, *usage_parts(answer.usage, language)]
    title = " · ".join([label("how", language), *filter(None, head)])
    panel = st.expander(title, key=f"how-{turn.id}", icon=":material/route:", type="compact", on_change="rerun")
    if panel.open:
        with panel:
            for tab, draw in zip(st.tabs([label(name, language) for name in views]), views.values(), strict=True):
                with tab:
                    draw()


def count_verdicts(statements: Sequence[Statement]) -> tuple[int, int, int]:
    """Return the numbers of supported, partly supported and all statements."""
    by_verdict = Counter(statement.verdict for statement in statements)
    return by_verdict["supported"], by_verdict["partly"], len(statements)


def checker(statements: Sequence[Statement]) -> CheckedBy:
    """Return the strongest checker among the statements that are not verbatim."""
    judges = {statement.by for statement in statements if statement.reason != "verbatim"}
    return "model" if "model" in judges else "local" if "local" in judges else "rules"


def check_summary(answer: Answer, language: Language) -> str:
    """Return e.g. `5 of 6 statements supported · checked by the chat model`; empty if all statements are quotes."""
    supported, partly, count = count_verdicts(answer.statements)
    if not count or answer.quoted:
        return ""
    by = checker(answer.statements)
    parts = [label("found" if by == "rules" else "checked", language, supported=supported, count=count)]
    parts += [label("checked_partly", language, count=partly)] if partly else []
    off_topic = sum(not statement.relevant for statement in answer.statements)
    parts += [label("checked_aside", language, count=off_topic)] if off_topic else []
    return " · ".join([*parts, label(f"checked_by_{by}", language)])


def doubts_of(answer: Answer, language: Language) -> list[Doubt]:
    """Return the statements that are not fully supported or are off-topic, with word and tooltip."""
    doubts = []
    for statement in answer.statements:
        by_rules, kind = statement.by == "rules", str(statement.verdict)
        if kind == "supported":
            if statement.relevant:
                continue
            kind = tip = "aside"
        else:
            kind = "not_found" if kind == "unsupported" and by_rules else kind
            in_part = kind == "partly" and by_rules
            tip = statement.reason if statement.reason in _TIPS else "words" if in_part else kind
        word, tooltip = label(f"doubt_{kind}", language), label(f"doubt_{tip}_tip", language)
        doubts.append(Doubt(statement.start, statement.end, word, tooltip, statement.verdict != "unsupported"))
    return doubts
