"""Question sets: import, editing, generation, questions from feedback, approval and export."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import streamlit as st

from rag.errors import RagError
from rag.evaluation.cases import Case, Evidence, Format
from rag.locales import Language, label
from rag.reading.charset import decode
from rag.text import question_language
from rag.types import Notice
from rag.ui.kit.actions import attempt, attempt_and_rerun, attempt_here
from rag.ui.kit.parts import draw_button, draw_table
from rag.ui.kit.session import chat_in_use, evaluation_of, person_id, session, set_param

if TYPE_CHECKING:
    from rag.app import App
    from rag.store.sql.evaluation_table import QuestionSet

_FORMATS: dict[Format, str] = {"jsonl": "application/jsonl", "csv": "text/csv", "ragas": "application/jsonl"}
_LONGEST, _LARGEST, _MAX_DRAFTS = 2_000, 20_000_000, 10
_PAGE_SIZE = 200  # questions drawn at first, and added by each click


def draw_sets(app: App, library: str, language: Language) -> None:
    """Draw the set in the URL with its questions, and a form that creates one."""
    sets = evaluation_of(app).sets.sets(library)
    question_set = choose_set(sets, language)
    if question_set is None:
        st.info(label("sets_empty", language), icon=":material/quiz:")
    else:
        _draw_set(app, question_set, language)
    with st.expander(label("sets_new", language), icon=":material/add:", type="compact", expanded=question_set is None):
        _draw_new(app, library, language)


def choose_set(sets: list[QuestionSet], language: Language) -> QuestionSet | None:
    """Draw the choice of a set, kept in the URL, and return the set; None if there are none."""
    if not sets:
        return None
    by_id = {one.id: one for one in sets}
    set_id = st.query_params.get("set", "")
    st.session_state["evaluation-set"] = set_id if set_id in by_id else sets[0].id
    st.selectbox(
        label("sets_choose", language),
        list(by_id),
        key="evaluation-set",
        format_func=lambda one: label("sets_row", language, name=by_id[one].name, count=by_id[one].cases),
        on_change=lambda: set_param("set", st.session_state["evaluation-set"]),
    )
    return by_id[st.session_state["evaluation-set"]]


def _draw_set(app: App, question_set: QuestionSet, language: Language) -> None:
    limit = int(st.session_state.get(f"cases-shown-{question_set.id}", _PAGE_SIZE))
    cases = evaluation_of(app).sets.cases(question_set.id, limit=limit)
    if question_set.drafts or question_set.moved or question_set.lost:
        counts = {"drafts": question_set.drafts, "moved": question_set.moved, "lost": question_set.lost}
        st.caption(label("sets_state", language, **counts))
    selected = _draw_cases(cases, question_set.id, language)
    if question_set.cases > limit:
        text = label("sets_more", language, shown=f"{limit:,}", count=f"{question_set.cases:,}")
        if st.button(text, type="tertiary", key="cases-more"):
            st.session_state[f"cases-shown-{question_set.id}"] = limit + _PAGE_SIZE
            st.rerun()
    _draw_set_actions(app, question_set, [cases[place] for place in selected if place < len(cases)], language)
    with st.expander(label("case_new", language), icon=":material/edit:", type="compact"):
        with st.form("case-form", clear_on_submit=True, border=False):
            question = st.text_input(label("case_question", language), key="case-question", max_chars=_LONGEST)
            answers = st.text_area(label("case_answers_lines", language), key="case-answers", height=80)
            url = st.text_input(label("case_url", language), key="case-url", max_chars=_LONGEST)
            quote = st.text_area(label("case_quote", language), key="case-quote", height=80)
            absent = st.checkbox(label("case_absent", language), key="case-absent")
            tags = st.text_input(label("case_tags", language), key="case-tags")
            submitted = st.form_submit_button(label("case_save", language), type="primary", key="case-save")
        case = case_from_form(question, answers, quote, url, tags, absent) if submitted else None
        if case and attempt_here(lambda: evaluation_of(app).sets.put(question_set.id, [case]), language):
            st.rerun()


def _draw_cases(cases: list[Case], set_id: str, language: Language) -> list[int]:
    """Draw the questions as a table; return the selected rows."""
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
    names = {name: st.column_config.TextColumn(label(f"case_{name}", language)) for name in columns}
    table = draw_table(
        rows, key=f"cases-{set_id}", column_config=names, hide_index=True, on_select="rerun", selection_mode="multi-row"
    )
    return list(table.selection.rows)


def _draw_set_actions(app: App, question_set: QuestionSet, cases: list[Case], language: Language) -> None:
    evaluation, ids = evaluation_of(app), [case.id for case in cases]
    sets = evaluation.sets
    actions: dict[str, tuple[str, Callable[[], None]]] = {
        "approve": ("check", lambda: sets.approve(question_set.id, ids)),
        "draft": ("edit_note", lambda: sets.approve(question_set.id, ids, False)),
        "remove": ("delete", lambda: sets.remove(question_set.id, ids)),
    }
    with st.container(horizontal=True, key="set-actions"):
        for name, (icon, action) in actions.items() if ids else ():
            text = label(f"case_{name}_do", language)
            if draw_button(text, icon, f"case-{name}"):
                attempt_and_rerun(action)
        for form, media in _FORMATS.items():
            name = f"{question_set.name}.{form if form == 'csv' else 'jsonl'}"
            text = label("sets_download", language, form=form.upper())
            export = partial(sets.export, question_set.id, form)  # created on a click, not on each redraw
            st.download_button(text, export, name, media, type="tertiary", key=f"download-{form}")
        if draw_button(label("sets_feedback", language), "thumbs_up_down", "feedback-in"):
            _run(lambda: evaluation.gather_feedback(question_set.library, question_set.id), "sets_feedback_done")
        if draw_button(label("sets_make_rules", language), "auto_awesome", "make-rules"):
            _run(lambda: evaluation.add_page_drafts(question_set.id), "sets_made")
        if chat_in_use(app) and draw_button(label("sets_make_model", language), "draw", "make-model"):
            _write(app, question_set, language)


def _run(work: Callable[[], int], code: str) -> None:
    """Run `work` and redraw the page with a notice of its count or error."""
    count: list[int] = []
    if attempt(lambda: count.append(work())):
        session().notices.append(Notice(code, {"count": count[0]}))
    st.rerun()


def _write(app: App, question_set: QuestionSet, language: Language) -> None:
    """Let the model write questions page by page; questions written before an error are kept."""
    count, failed = 0, False
    drafts = evaluation_of(app).write_drafts(question_set.id, _MAX_DRAFTS, chat=session().chat, person=person_id())
    try:
        with st.status(label("sets_making", language, count=0)) as status:
            for count, _ in enumerate(drafts, 1):
                status.update(label=label("sets_making", language, count=count))
    except RagError as error:
        session().notices.append(error.notice)
        failed = True
    if count or not failed:
        session().notices.append(Notice("sets_made", {"count": count}))
    st.rerun()


def case_from_form(
    question: str, answers: str, quote: str, url: str = "", tags: str = "", absent: bool = False
) -> Case | None:
    """Return a question from its form, with one answer per line; None without a question."""
    text, passage = question.strip(), quote.strip()
    evidence = (Evidence(url.strip(), passage),) if passage else ()
    expected = tuple(line.strip() for line in answers.splitlines() if line.strip())
    answerable = False if absent else True if evidence else None
    case = Case(uuid4().hex[:12], text, question_language(text), expected, evidence, tuple(tags.split()), answerable)
    return case if text else None


def _draw_new(app: App, library: str, language: Language) -> None:
    with st.form("set-form", border=False):
        name = st.text_input(label("sets_name", language), key="set-name", max_chars=120)
        st.caption(label("sets_forms", language))
        upload = st.file_uploader(label("sets_file", language), type=["jsonl", "csv", "json"], key="set-file")
        submitted = st.form_submit_button(label("sets_make", language), type="primary", key="set-make")
    if not submitted:
        return
    title = (name or "").strip() or (upload.name.rpartition(".")[0] if upload else "")
    sets, created = evaluation_of(app).sets, list[str]()

    def make() -> str:
        if upload is None:
            return sets.create(library, title)
        return sets.import_file(library, title, decode(upload.getvalue()[:_LARGEST]))

    if attempt_here(lambda: created.append(make()), language):
        set_param("set", created[0])
        st.rerun()
