"""Two to four runs side by side: what differs and how sure that is, question by question, and against limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.errors import RagError
from rag.evaluation import gate
from rag.evaluation.comparison import MOST, select
from rag.evaluation.evaluation import Side
from rag.locales import say
from rag.ui.evaluation.charts import by_run, differences, plot
from rag.ui.evaluation.runs import draw_withheld, setting_name
from rag.ui.evaluation.side_by_side import draw_answers
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import data_table, language_name, metric_name, moment
from rag.ui.kit.session import evaluation_of
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.cases import Case
    from rag.evaluation.comparison import Compared

_COLORS = {"better": "green", "worse": "red", "no_difference_shown": "gray", "too_few": "gray"}
_WORST = 20
_USUAL = ("recall@4000", "all@4000", "faithfulness", "contains", "token_f1", "calls", "seconds_p50")


def draw_compare(app: App, library: str, language: Language) -> None:
    offered = [
        Side(run.id, setting.name)
        for run in evaluation_of(app).runs.runs(library)
        if run.done
        for setting in run.settings
    ]
    if len(offered) < 2:
        st.info(label("compare_none", language), icon=":material/compare_arrows:")
        return
    sides = _sides(app, offered, language)
    if len(sides) < 2:
        return
    cases = evaluation_of(app).runs.cases(sides[0].run_id)
    languages, tags = _confined(cases, language)
    ids = tuple(select(cases, languages, tags)) if languages or tags else None
    try:
        done = sum(evaluation_of(app).runs.run(side.run_id).done for side in sides)
        found = _compared(app, tuple(sides), ids, (done, bool(evaluation_of(app).withheld(sides))))
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")
        return
    for side, compared in zip(sides[1:], found, strict=True):
        _draw_differences(compared, _named(app, side, language), _named(app, sides[0], language), language)
    draw_withheld(app, sides, language)
    _draw_gate(app, sides, language)
    _draw_questions(app, sides, {case.id: case for case in cases}, ids, language)


@st.cache_data(max_entries=20, show_spinner=False)
def _compared(
    _app: App,
    sides: tuple[Side, ...],
    ids: tuple[str, ...] | None,
    known: tuple[int, bool],  # noqa: ARG001 - a part of the key
) -> list[list[Compared]]:
    """Kept while nothing new is answered: thousands of samples are drawn, and each click draws the page again."""
    return evaluation_of(_app).compare(sides, ids)


def _sides(app: App, offered: Sequence[Side], language: Language) -> list[Side]:
    """The runs that were chosen, the first being what the others stand beside; at first the two newest."""
    st.session_state.setdefault("compare-sides", list(offered[1::-1]))
    st.session_state["compare-sides"] = [one for one in st.session_state["compare-sides"] if one in offered]
    picked: list[Side] = st.multiselect(
        label("compare_runs", language),
        offered,
        key="compare-sides",
        max_selections=MOST,
        format_func=lambda side: _named(app, side, language),
        placeholder=label("compare_choose", language),
    )
    return picked


def _named(app: App, side: Side, language: Language) -> str:
    run = evaluation_of(app).runs.run(side.run_id)
    return f"{shorten(run.name, 30)} · {setting_name(side.setting, language)} · {moment(run.created_at)}"


def _confined(cases: Sequence[Case], language: Language) -> tuple[list[str], list[str]]:
    """The languages and tags that the comparison is confined to, where there are several."""
    languages = sorted({case.language for case in cases if case.language})
    tags = sorted({tag for case in cases for tag in case.tags})
    return _pick("languages", languages, language), _pick("tags", tags, language)


def _pick(name: str, offered: list[str], language: Language) -> list[str]:
    if len(offered) < 2:
        return []
    told = {one: language_name(one, language) if name == "languages" else one for one in offered}
    named = label(f"compare_{name}", language)
    return st.pills(named, offered, selection_mode="multi", format_func=told.__getitem__, key=f"compare-{name}")


def _draw_differences(found: Sequence[Compared], side: str, first: str, language: Language) -> None:
    st.markdown(f"**{label('compare_beside', language, side=escape_line(side), first=escape_line(first))}**")
    told = [one for one in found if one.metric.better and one.difference.verdict in ("better", "worse")]
    if told:
        shown = (
            f":{_COLORS[one.difference.verdict]}-badge[{metric_name(one.metric.name, language)}: "
            f"{label('verdict_' + one.difference.verdict, language)} {one.difference.by.value:+.3f}]"
            for one in told
        )
        st.markdown(" ".join(shown))
    else:
        st.markdown(f":gray-badge[{label('verdict_no_difference_shown', language)}]")
    usual = [one for one in found if one.metric.name in _USUAL]
    if usual:
        st.image(differences(usual, language), width="content")
    named = {
        name: label(f"figure_{name}", language)
        for name in ("metric", "before", "after", "by", "interval", "p", "verdict", "judged")
    }
    data_table([_row(one, language) for one in found], column_config=named, hide_index=True)


def _row(one: Compared, language: Language) -> dict[str, Any]:
    difference, needed = one.difference, one.difference.needed
    verdict = label(f"verdict_{difference.verdict}", language) if one.metric.better else ""
    if verdict and needed:
        verdict = f"{verdict} ({label('compare_needed', language, count=f'{needed:,}')})"
    return {
        "metric": metric_name(one.metric.name, language),
        "before": round(difference.before, 4),
        "after": round(difference.after, 4),
        "by": f"{difference.by.value:+.4f}",
        "interval": f"{difference.by.low:+.3f} – {difference.by.high:+.3f}",
        "p": f"{one.p:.3f}",
        "verdict": verdict,
        "judged": f"{difference.n} / {one.of}",
    }


def _draw_gate(app: App, sides: Sequence[Side], language: Language) -> None:
    """Limits held against what was lost from the first to the last."""
    with st.expander(label("compare_gate", language), icon=":material/rule:", type="compact"):
        st.caption(label("compare_gate_lead", language))
        given = st.text_input(
            label("compare_limits", language), key="gate-limits", placeholder="recall@4000:-0.01,calls:+0"
        )
        if not given:
            return
        try:
            scores = [evaluation_of(app).runs.scores(side.run_id, side.setting) for side in (sides[0], sides[-1])]
            checked = gate.check(gate.read_limits(given), *scores)
        except RagError as error:
            st.error(escape_line(say(error.notice, language)), icon=":material/error:")
            return
        for one in checked:
            color, icon = ("green", "check_circle") if one.passes else ("red", "cancel")
            held = label("gate_held" if one.passes else "gate_broken", language)
            named = metric_name(one.limit.metric, language)
            st.badge(f"{named} · {held} · {one.loss:+}", icon=f":material/{icon}:", color=color)  # type: ignore[arg-type]


def _draw_questions(
    app: App, sides: Sequence[Side], asked: Mapping[str, Case], ids: Sequence[str] | None, language: Language
) -> None:
    """The questions that differ most by one metric; one of them opened."""
    metrics = [one.metric.name for one in evaluation_of(app).figures(sides[0], ids) if len(one.metric.needs) == 1]
    if not metrics:
        return
    usual = next((at for at, name in enumerate(metrics) if name in _USUAL), 0)
    named = label("compare_by", language)
    how: dict[str, Any] = {"format_func": lambda name: metric_name(name, language), "key": "compare-metric"}
    metric = st.selectbox(named, metrics, index=usual, **how) or metrics[0]
    _draw_runs(app, sides, metric, ids, language)
    pairs = [one for one in evaluation_of(app).by_difference(sides, metric, ids) if one.case_id in asked][:_WORST]
    rows = [
        {"question": asked[pair.case_id].question, **{str(n): _told(v) for n, v in enumerate(pair.values, 1)}}
        for pair in pairs
    ]
    columns = {str(n): setting_name(side.setting, language) for n, side in enumerate(sides, 1)}
    columns["question"] = label("case_question", language)
    how = {"hide_index": True, "on_select": "rerun", "selection_mode": "single-row"}
    picked = data_table(rows, key="compare-questions", column_config=columns, **how)
    for place in picked.selection.rows:
        case = asked[pairs[place].case_id]
        found = [evaluation_of(app).runs.row(side.run_id, side.setting, case.id) for side in sides]
        draw_answers(case, [row for row in found if row], language)


def _draw_runs(app: App, sides: Sequence[Side], metric: str, ids: Sequence[str] | None, language: Language) -> None:
    """The metric of each run with its interval, and beside what it cost."""
    found = [{one.metric.name: one.value for one in evaluation_of(app).figures(side, ids)} for side in sides]
    names, named = [setting_name(side.setting, language) for side in sides], metric_name(metric, language)
    told = [(name, one) for name, one in zip(names, found, strict=True) if metric in one]
    st.image(by_run(named, [(name, one[metric]) for name, one in told]), width="content")
    costs = [(one["calls"].value, one[metric].value, name) for name, one in told if "calls" in one]
    if metric != "calls" and len({calls for calls, *_ in costs}) > 1:
        st.image(plot(label("chart_cost", language, metric=named), costs), width="content")


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
