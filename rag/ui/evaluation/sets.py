"""Sets of questions: brought in, written, taken from thumbs, approved, taken out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import streamlit as st

from rag.errors import RagError
from rag.evaluation.cases import Case, Evidence, Format
from rag.reading.charset import decode
from rag.text import question_language
from rag.types import Notice
from rag.ui.kit.attempt import accepted, attempt
from rag.ui.kit.parts import data_table
from rag.ui.kit.session import chat_in_use, evaluation_of, session, set_param, whose
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.sets import SetView

_FORMATS: dict[Format, str] = {"jsonl": "application/jsonl", "csv": "text/csv", "ragas": "application/jsonl"}
_LONGEST, _LARGEST, _WRITTEN = 2_000, 20_000_000, 10
_SHOWN = 200  # questions at first, and more each time


def draw_sets(app: App, library: str, language: Language) -> None:
    """The set that the address names, with its questions; ways to begin one."""
    sets = evaluation_of(app).sets.sets(library)
    chosen = choose_set(sets, language)
    if chosen is None:
        st.info(label("sets_empty", language), icon=":material/quiz:")
    else:
        _draw_set(app, chosen, language)
    with st.expander(label("sets_new", language), icon=":material/add:", type="compact", expanded=chosen is None):
        _draw_new(app, library, language)


def choose_set(sets: list[SetView], language: Language) -> SetView | None:
    """The set that was chosen, which the address keeps; None where there is none."""
    if not sets:
        return None
    known = {one.id: one for one in sets}
    named = st.query_params.get("set", "")
    st.session_state["evaluation-set"] = named if named in known else sets[0].id
    st.selectbox(
        label("sets_choose", language),
        list(known),
        key="evaluation-set",
        format_func=lambda one: label("sets_row", language, name=known[one].name, count=known[one].cases),
        on_change=lambda: set_param("set", st.session_state["evaluation-set"]),
    )
    return known[st.session_state["evaluation-set"]]


def _draw_set(app: App, chosen: SetView, language: Language) -> None:
    shown = int(st.session_state.get(f"cases-shown-{chosen.id}", _SHOWN))
    cases = evaluation_of(app).sets.cases(chosen.id, limit=shown)
    if chosen.drafts or chosen.moved or chosen.lost:
        counts = {"drafts": chosen.drafts, "moved": chosen.moved, "lost": chosen.lost}
        st.caption(label("sets_state", language, **counts))
    picked = _draw_cases(cases, chosen.id, language)
    if chosen.cases > shown:
        told = label("sets_more", language, shown=f"{shown:,}", count=f"{chosen.cases:,}")
        if st.button(told, type="tertiary", key="cases-more"):
            st.session_state[f"cases-shown-{chosen.id}"] = shown + _SHOWN
            st.rerun()
    _draw_picked(app, chosen, [cases[place] for place in picked if place < len(cases)], language)
    with st.expander(label("case_new", language), icon=":material/edit:", type="compact"):
        _draw_case_form(app, chosen, language)


def _draw_cases(cases: list[Case], set_id: str, language: Language) -> list[int]:
    """Draw the questions as a table; returns the selected rows."""
    if not cases:
        st.caption(label("sets_no_cases", language))
        return []
    columns = ("question", "answers", "evidence", "tags", "status")
    rows = [
        {
            "question": case.question,
            "answers": " · ".join(case.answers),
            "evidence": " · ".join(case.quotes),
            "tags": " ".join(case.tags),
            "status": label(f"case_{case.status}", language),
        }
        for case in cases
    ]
    named = {name: st.column_config.TextColumn(label(f"case_{name}", language)) for name in columns}
    found = data_table(
        rows, key=f"cases-{set_id}", column_config=named, hide_index=True, on_select="rerun", selection_mode="multi-row"
    )
    return list(found.selection.rows)


def _draw_picked(app: App, chosen: SetView, cases: list[Case], language: Language) -> None:
    """What can be done with the ticked questions, and with the set."""
    evaluation, ids = evaluation_of(app), [case.id for case in cases]
    sets = evaluation.sets
    actions: dict[str, tuple[str, Callable[[], None]]] = {
        "approve": ("check", lambda: sets.approve(chosen.id, ids)),
        "draft": ("edit_note", lambda: sets.approve(chosen.id, ids, False)),
        "remove": ("delete", lambda: sets.remove(chosen.id, ids)),
    }
    with st.container(horizontal=True, key="set-actions"):
        for name, (icon, action) in actions.items() if ids else ():
            told = label(f"case_{name}_do", language)
            if st.button(told, icon=f":material/{icon}:", key=f"case-{name}"):
                attempt(action)
                st.rerun()
        for form, media in _FORMATS.items():
            name = f"{chosen.name}.{form if form == 'csv' else 'jsonl'}"
            told = label("sets_download", language, form=form.upper())
            export = partial(sets.export, chosen.id, form)  # made when it is asked for, not each time this is drawn
            st.download_button(told, export, name, media, type="tertiary", key=f"download-{form}")
        if st.button(label("sets_feedback", language), icon=":material/thumbs_up_down:", key="feedback-in"):
            _take_in(lambda: evaluation.gather_feedback(chosen.library, chosen.id), "sets_feedback_done")
        if st.button(label("sets_make_rules", language), icon=":material/auto_awesome:", key="make-rules"):
            _take_in(lambda: evaluation.make(chosen.id), "sets_made")
        if chat_in_use(app) and st.button(label("sets_make_model", language), icon=":material/draw:", key="make-model"):
            _write(app, chosen, language)


def _take_in(work: Callable[[], int], told: str) -> None:
    """Run `work` and note its result for the next drawing of the page."""
    count: list[int] = []
    if attempt(lambda: count.append(work())):
        session().notes.append(Notice(told, {"count": count[0]}))
    st.rerun()


def _write(app: App, chosen: SetView, language: Language) -> None:
    """The model is asked page by page; what it wrote so far is kept whatever happens."""
    count = 0
    drafts = evaluation_of(app).write(chosen.id, _WRITTEN, chat=session().chat, person=whose())
    try:
        with st.status(label("sets_making", language, count=0)) as status:
            for count, _ in enumerate(drafts, 1):
                status.update(label=label("sets_making", language, count=count))
    except RagError as error:
        session().notes.append(error.notice)
    session().notes.append(Notice("sets_made", {"count": count}))
    st.rerun()


def _draw_case_form(app: App, chosen: SetView, language: Language) -> None:
    with st.form("case-form", clear_on_submit=True, border=False):
        question = st.text_input(label("case_question", language), key="case-question", max_chars=_LONGEST)
        answers = st.text_area(label("case_answers_lines", language), key="case-answers", height=80)
        url = st.text_input(label("case_url", language), key="case-url", max_chars=_LONGEST)
        quote = st.text_area(label("case_quote", language), key="case-quote", height=80)
        absent = st.checkbox(label("case_absent", language), key="case-absent")
        tags = st.text_input(label("case_tags", language), key="case-tags")
        saved = st.form_submit_button(label("case_save", language), type="primary", key="case-save")
    case = written(question, answers, quote, url, tags, absent) if saved else None
    if case and accepted(lambda: evaluation_of(app).sets.put(chosen.id, [case]), language):
        st.rerun()


def written(
    question: str, answers: str, quote: str, url: str = "", tags: str = "", absent: bool = False
) -> Case | None:
    """A question as a person wrote it, right answers one a line; None without its words."""
    asked, said = question.strip(), quote.strip()
    evidence = (Evidence(url.strip(), said),) if said else ()
    given = tuple(line.strip() for line in answers.splitlines() if line.strip())
    answerable = False if absent else True if evidence else None
    case = Case(uuid4().hex[:12], asked, question_language(asked), given, evidence, tuple(tags.split()), answerable)
    return case if asked else None


def _draw_new(app: App, library: str, language: Language) -> None:
    with st.form("set-form", border=False):
        name = st.text_input(label("sets_name", language), key="set-name", max_chars=120)
        st.caption(label("sets_forms", language))
        given = st.file_uploader(label("sets_file", language), type=["jsonl", "csv", "json"], key="set-file")
        made = st.form_submit_button(label("sets_make", language), type="primary", key="set-make")
    if not made:
        return
    named = (name or "").strip() or (given.name.rpartition(".")[0] if given else "")
    sets, found = evaluation_of(app).sets, list[str]()

    def make() -> str:
        if given is None:
            return sets.create(library, named)
        return sets.bring_in(library, named, decode(given.getvalue()[:_LARGEST]))

    if accepted(lambda: found.append(make()), language):
        set_param("set", found[0])
        st.rerun()
