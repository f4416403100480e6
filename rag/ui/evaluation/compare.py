"""Comparisons of two to four runs, with intervals and limits, and of one question under two settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.errors import RagError
from rag.evaluation.comparison import MAX_SIDES, check_limits, read_limits, select
from rag.evaluation.evaluation import Side
from rag.locales import Language, label, language_name
from rag.ui.evaluation.charts import chart_differences, chart_points, chart_runs
from rag.ui.evaluation.runs import draw_setting_choice, draw_withheld, figure_columns, setting_name, side_name
from rag.ui.evaluation.sets import case_from_form
from rag.ui.kit.actions import attempt, draw_failure
from rag.ui.kit.markdown import answer_markdown, escape_line, shorten
from rag.ui.kit.parts import draw_table, metric_name
from rag.ui.kit.session import evaluation_of, person_id, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.cases import Case
    from rag.evaluation.comparison import MetricDifference
    from rag.evaluation.runs import RowView

_COLORS = {"better": "green", "worse": "red", "no_difference_shown": "gray", "too_few": "gray"}
_LIMIT = 20
_MAIN_METRICS = ("recall@4000", "all@4000", "faithfulness", "contains", "token_f1", "calls", "seconds_p50")
_ANSWER_METRICS = (
    *("recall@4000", "all@4000", "context_precision", "context_recall", "faithfulness", "answer_correctness"),
    *("token_f1", "calls", "searches", "seconds"),
)
_PASSAGES, _PREVIEW, _LONGEST_FIELD = 5, 300, 2_000


def draw_compare(app: App, library: str, language: Language) -> None:
    candidates = [
        Side(run.id, setting.name)
        for run in evaluation_of(app).runs.runs(library)
        if run.done
        for setting in run.settings
    ]
    if len(candidates) < 2:
        st.info(label("compare_none", language), icon=":material/compare_arrows:")
        return
    sides = _sides(app, candidates, language)
    if len(sides) < 2:
        return
    cases = evaluation_of(app).runs.cases(sides[0].run_id)
    languages = _pick("languages", sorted({case.language for case in cases if case.language}), language)
    tags = _pick("tags", sorted({tag for case in cases for tag in case.tags}), language)
    ids = tuple(select(cases, languages, tags)) if languages or tags else None
    try:
        done = sum(evaluation_of(app).runs.run(side.run_id).done for side in sides)
        comparisons = _compare(app, tuple(sides), ids, (done, bool(evaluation_of(app).withheld_metrics(sides))))
    except RagError as error:
        draw_failure(error.notice, language)
        return
    for side, comparison in zip(sides[1:], comparisons, strict=True):
        _draw_comparison(comparison, _side_name(app, side, language), _side_name(app, sides[0], language), language)
    draw_withheld(app, sides, language)
    _draw_gate(app, sides, language)
    _draw_questions(app, sides, {case.id: case for case in cases}, ids, language)


@st.cache_data(max_entries=20, show_spinner=False)
def _compare(
    _app: App,
    sides: tuple[Side, ...],
    ids: tuple[str, ...] | None,
    state: tuple[int, bool],  # noqa: ARG001 - part of the cache key
) -> list[list[MetricDifference]]:
    """Compare runs, cached until new answers arrive: bootstrapping is slow, and each click redraws the page."""
    return evaluation_of(_app).compare(sides, ids)


def _sides(app: App, candidates: Sequence[Side], language: Language) -> list[Side]:
    """Return the selected runs, the first as the baseline; initially the two newest."""
    st.session_state.setdefault("compare-sides", list(candidates[1::-1]))
    st.session_state["compare-sides"] = [side for side in st.session_state["compare-sides"] if side in candidates]
    selected: list[Side] = st.multiselect(
        label("compare_runs", language),
        candidates,
        key="compare-sides",
        max_selections=MAX_SIDES,
        format_func=lambda side: _side_name(app, side, language),
        placeholder=label("compare_choose", language),
    )
    return selected


def _side_name(app: App, side: Side, language: Language) -> str:
    return side_name(evaluation_of(app).runs.run(side.run_id), side.setting, language)


def _pick(name: str, candidates: list[str], language: Language) -> list[str]:
    """Return the values that limit the comparison, if there are several to choose from."""
    if len(candidates) < 2:
        return []
    names = {one: language_name(one, language) if name == "languages" else one for one in candidates}
    title = label(f"compare_{name}", language)
    return st.pills(title, candidates, selection_mode="multi", format_func=names.__getitem__, key=f"compare-{name}")


def _draw_comparison(comparisons: Sequence[MetricDifference], side: str, first: str, language: Language) -> None:
    st.markdown(f"**{label('compare_beside', language, side=escape_line(side), first=escape_line(first))}**")
    significant = [
        item for item in comparisons if item.metric.better and item.difference.verdict in ("better", "worse")
    ]
    if significant:
        badges = (
            f":{_COLORS[item.difference.verdict]}-badge[{metric_name(item.metric.name, language)}: "
            f"{label('verdict_' + item.difference.verdict, language)} {item.difference.delta.value:+.3f}]"
            for item in significant
        )
        st.markdown(" ".join(badges))
    else:
        st.markdown(f":gray-badge[{label('verdict_no_difference_shown', language)}]")
    main = [item for item in comparisons if item.metric.name in _MAIN_METRICS]
    if main:
        st.image(chart_differences(main, language), width="content")
    columns = figure_columns(("metric", "before", "after", "by", "interval", "p", "verdict", "judged"), language)
    draw_table([_row(item, language) for item in comparisons], column_config=columns, hide_index=True)


def _row(item: MetricDifference, language: Language) -> dict[str, Any]:
    difference, needed = item.difference, item.difference.needed
    verdict = label(f"verdict_{difference.verdict}", language) if item.metric.better else ""
    if verdict and needed:
        verdict = f"{verdict} ({label('compare_needed', language, count=f'{needed:,}')})"
    return {
        "metric": metric_name(item.metric.name, language),
        "before": difference.before,
        "after": difference.after,
        "by": f"{difference.delta.value:+.3f}",
        "interval": f"{difference.delta.low:+.3f} – {difference.delta.high:+.3f}",
        "p": f"{item.p:.3f}",
        "verdict": verdict,
        "judged": f"{difference.n} / {item.total}",
    }


def _draw_gate(app: App, sides: Sequence[Side], language: Language) -> None:
    """Draw the limits, and whether the last run stays within them relative to the first."""
    with st.expander(label("compare_gate", language), icon=":material/rule:", type="compact"):
        st.caption(label("compare_gate_lead", language))
        limits = st.text_input(
            label("compare_limits", language), key="gate-limits", placeholder="recall@4000:-0.01,calls:+0"
        )
        if not limits:
            return
        try:
            scores = [evaluation_of(app).runs.scores(side.run_id, side.setting) for side in (sides[0], sides[-1])]
            results = check_limits(read_limits(limits), *scores)
        except RagError as error:
            draw_failure(error.notice, language)
            return
        for result in results:
            color, icon = ("green", "check_circle") if result.passes else ("red", "cancel")
            verdict = label("gate_held" if result.passes else "gate_broken", language)
            name = metric_name(result.limit.metric, language)
            st.badge(f"{name} · {verdict} · {result.loss:+}", icon=f":material/{icon}:", color=color)  # type: ignore[arg-type]


def _draw_questions(
    app: App, sides: Sequence[Side], cases: Mapping[str, Case], ids: Sequence[str] | None, language: Language
) -> None:
    """Draw one metric of each run with its interval and against its cost, then the questions that differ most by it,
    and the answers to the selected one."""
    metrics = [one.metric.name for one in evaluation_of(app).figures(sides[0], ids) if len(one.metric.needs) == 1]
    if not metrics:
        return
    usual = next((at for at, name in enumerate(metrics) if name in _MAIN_METRICS), 0)
    title = label("compare_by", language)
    options: dict[str, Any] = {"format_func": lambda name: metric_name(name, language), "key": "compare-metric"}
    metric = st.selectbox(title, metrics, index=usual, **options) or metrics[0]
    figures = [{one.metric.name: one.value for one in evaluation_of(app).figures(side, ids)} for side in sides]
    names, title = [setting_name(side.setting, language) for side in sides], metric_name(metric, language)
    measured = [(name, one) for name, one in zip(names, figures, strict=True) if metric in one]
    st.image(chart_runs(title, [(name, one[metric]) for name, one in measured]), width="content")
    costs = [(one["calls"].value, one[metric].value, name) for name, one in measured if "calls" in one]
    if metric != "calls" and len({calls for calls, *_ in costs}) > 1:
        st.image(chart_points(label("chart_cost", language, metric=title), costs), width="content")
    pairs = [one for one in evaluation_of(app).rank_by_difference(sides, metric, ids) if one.case_id in cases][:_LIMIT]
    rows = [
        {"question": cases[pair.case_id].question, **{str(n): _format(v) for n, v in enumerate(pair.values, 1)}}
        for pair in pairs
    ]
    columns = {"question": label("case_question", language), **{str(n): name for n, name in enumerate(names, 1)}}
    options = {"hide_index": True, "on_select": "rerun", "selection_mode": "single-row"}
    table = draw_table(rows, key="compare-questions", column_config=columns, **options)
    for place in table.selection.rows:
        case = cases[pairs[place].case_id]
        answers = [evaluation_of(app).runs.row(side.run_id, side.setting, case.id) for side in sides]
        _draw_answers(case, [row for row in answers if row], language)


def _format(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def draw_side_by_side(app: App, library: str, language: Language) -> None:
    with st.form("beside-form", border=False):
        question = st.text_input(label("case_question", language), key="beside-question", max_chars=_LONGEST_FIELD)
        answer = st.text_input(label("beside_answer", language), key="beside-answer", max_chars=_LONGEST_FIELD)
        quote = st.text_area(label("case_quote", language), key="beside-quote", height=70)
        left, right = st.columns(2)
        with left:
            first = draw_setting_choice("beside-first", language, mode="classic")
        with right:
            second = draw_setting_choice("beside-second", language)
        submitted = st.form_submit_button(label("beside_ask", language), type="primary", key="beside-ask")
    if submitted and (case := case_from_form(question, answer, quote)):
        rows: list[RowView] = []
        options: dict[str, Any] = {"person": person_id(), "chat": session().chat}
        with st.spinner(label("beside_asking", language)):
            side_by_side = partial(evaluation_of(app).side_by_side, library, case, [first, second], **options)
            attempt(lambda: rows.extend(side_by_side()))
        st.session_state["beside"] = (case, rows)
    if stored := st.session_state.get("beside"):
        case, rows = stored
        _draw_answers(case, rows, language)


def _draw_answers(case: Case, rows: Sequence[RowView], language: Language) -> None:
    st.markdown(f"**{escape_line(case.question)}**")
    if case.answers:
        st.caption(label("beside_expected", language, answers=escape_line(" · ".join(case.answers))))
    for column, (place, row) in zip(st.columns(len(rows) or 1), enumerate(rows), strict=False):
        with column, st.container(border=True, key=f"beside-{place}-{case.id}"):
            outcome = label(f"outcome_{row.answer.outcome}", language)
            st.markdown(f"**{escape_line(setting_name(row.setting, language))}** :gray[{outcome}]")
            if row.answer.text:
                st.markdown(answer_markdown(row.answer.text), anchors=False)
            scores = [(metric_name(name, language), row.scores.get(name)) for name in _ANSWER_METRICS]
            figures = [{"metric": name, "value": value} for name, value in scores if value is not None]
            draw_table(figures, column_config=figure_columns(("metric", "value"), language), hide_index=True)
            passages = label("beside_passages", language, count=len(row.answer.passages))
            with st.expander(passages, type="compact"):
                for passage in row.answer.passages[:_PASSAGES]:
                    title, text = escape_line(passage.title or passage.url), shorten(passage.text, _PREVIEW)
                    st.caption(f"**{title}**  \n{escape_line(text)}")
