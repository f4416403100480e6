"""Evaluation runs: question sets answered under one or more settings, with progress and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.config import STRATEGIES
from rag.evaluation.cases import CLASSIC, Setting, grid
from rag.evaluation.evaluation import Side
from rag.locales import Language, label, say
from rag.ui.evaluation.charts import chart_calibration, chart_points
from rag.ui.evaluation.sets import choose_set
from rag.ui.kit.actions import attempt_and_rerun, attempt_here
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.parts import draw_button, draw_table, duration, format_time, metric_name, strategy_name
from rag.ui.kit.session import MODES, chat_in_use, evaluation_of, person_id, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.runs import RunView
    from rag.store.sql.evaluation_table import QuestionSet

_POLL_SECONDS = 1.0
_Action = tuple[str, str, Callable[[str], object]]
_LIMIT = 20
_NUMBERS = frozenset(("value", "before", "after"))


def draw_runs(app: App, library: str, language: Language) -> None:
    question_set = choose_set(evaluation_of(app).sets.sets(library), language)
    if question_set is None:
        st.info(label("sets_empty", language), icon=":material/quiz:")
        return
    with st.container(border=True, key="run-new"):
        _draw_new(app, question_set, language)
    faithfulness = (scores.get("faithfulness") for _, scores in evaluation_of(app).scores_over_time(library))
    points = [(float(place), value, "") for place, value in enumerate(faithfulness) if value is not None]
    if len(points) > 1:
        st.image(chart_points(label("chart_time", language), points), width="content")
    runs = evaluation_of(app).runs.runs(library)[:_LIMIT]
    for run in runs:
        with st.container(border=True, key=f"run-{run.id}"):
            every = _POLL_SECONDS if run.state == "running" else None
            st.fragment(_draw_run, run_every=every)(app, run.id, language)


def _draw_new(app: App, question_set: QuestionSet, language: Language) -> None:
    modes = st.multiselect(
        label("run_modes", language),
        MODES,
        default=["fast"],
        key="run-modes",
        format_func=lambda mode: label(f"mode_{mode}", language),
    )
    strategies = st.multiselect(
        label("run_strategies", language),
        STRATEGIES,
        key="run-strategies",
        format_func=lambda name: strategy_name(name, language, reranks=app.models.reranker is not None),
        placeholder=label("run_as_set", language),
    )
    classic = st.toggle(label("run_classic", language), key="run-classic", help=label("run_classic_hint", language))
    with_judge = chat_in_use(app) and st.toggle(
        label("run_judge", language), key="run-judge", help=label("run_judge_hint", language)
    )
    settings = grid(modes, strategies, classic=classic)
    with st.container(horizontal=True, vertical_alignment="center"):
        start = draw_button(label("run_begin", language), "play_arrow", "run-begin", type="primary")
        st.caption(
            label("run_count", language, questions=question_set.cases - question_set.drafts, settings=len(settings)),
            width="content",
        )
    if start:
        kw: dict[str, Any] = {"person": person_id(), "chat": session().chat, "judge": bool(with_judge)}
        if attempt_here(lambda: evaluation_of(app).evaluate(question_set.id, settings, **kw), language):
            st.rerun()


def _draw_run(app: App, run_id: str, language: Language) -> None:
    run = evaluation_of(app).runs.run(run_id)
    state = label(f"run_state_{run.state}", language)
    st.markdown(f"**{escape_line(run.name)}** :gray[{format_time(run.created_at)} · {state}]")
    if run.state in ("running", "paused"):
        st.progress(run.done / max(1, run.total), text=label("run_done", language, done=run.done, total=run.total))
    if run.notice:
        st.caption(escape_line(say(run.notice, language)))
    if run.done and run.state in ("done", "cancelled"):
        st.markdown("  \n".join(_main_figures(app, run, language)))
    _draw_actions(app, run, language)
    if run.done:
        with st.expander(label("run_figures", language), icon=":material/table_chart:", type="compact"):
            _draw_figures(app, run, language)


def _main_figures(app: App, run: RunView, language: Language) -> list[str]:
    """Return a line of key figures for each setting."""
    lines = []
    means_of = evaluation_of(app).main_figures(run.id)
    for setting in run.settings:
        figures = [
            label(
                f"main_{name.partition('@')[0]}",
                language,
                value=duration(value * 1000, language) if name == "seconds" else f"{value:.3f}",
            )
            for name, value in means_of[setting.name].items()
            if value or name != "failed"
        ]
        lines.append(f":gray[{escape_line(setting_name(setting.name, language))}:] {' · '.join(figures)}")
    return lines


def _draw_actions(app: App, run: RunView, language: Language) -> None:
    runs = evaluation_of(app).runs
    stop: _Action = ("cancel", "stop_circle", runs.cancel)
    actions: dict[str, tuple[_Action, ...]] = {
        "running": (("pause", "pause", runs.pause), stop),
        "paused": (("resume", "play_arrow", partial(runs.resume, chat=session().chat)), stop),
    }
    with st.container(horizontal=True, key=f"run-actions-{run.id}"):
        for name, icon, action in actions.get(run.state, (("delete", "delete", runs.delete),)):
            text = label(f"run_{name}", language)
            if draw_button(text, icon, f"run-{name}-{run.id}", type="tertiary"):
                attempt_and_rerun(partial(action, run.id))


def _draw_figures(app: App, run: RunView, language: Language) -> None:
    """Draw metrics with their intervals and the number of questions that each covers."""
    names = [setting.name for setting in run.settings]
    setting = names[0]
    if len(names) > 1:
        kw: dict[str, Any] = {"format_func": partial(setting_name, language=language), "key": f"run-setting-{run.id}"}
        setting = st.selectbox(label("run_setting", language), names, **kw) or setting
    side = Side(run.id, setting)
    rows = [
        {
            "metric": metric_name(figure.metric.name, language),
            "value": figure.value.value,
            "interval": f"{figure.value.low:.3f} – {figure.value.high:.3f}",
            "judged": f"{figure.n} / {figure.total}",
        }
        for figure in evaluation_of(app).figures(side)
    ]
    columns = figure_columns(("metric", "value", "interval", "judged"), language)
    draw_table(rows, key=f"figures-{run.id}", column_config=columns, hide_index=True)
    draw_withheld(app, [side], language)
    text, name = label("sets_download", language, form="RAGAS"), f"{run.name}.jsonl"
    export = partial(evaluation_of(app).export, run.id, setting)
    st.download_button(text, export, name, "application/jsonl", type="tertiary", key=f"download-{run.id}")
    if len(bins := evaluation_of(app).calibration(side)) > 1:
        st.image(chart_calibration(bins, language), width="content")


def figure_columns(names: Sequence[str], language: Language) -> dict[str, Any]:
    """Return the columns of a table of figures, whose numbers have three decimals like all figures of runs."""
    titles = {name: label(f"figure_{name}", language) for name in names}
    numbers = {name: st.column_config.NumberColumn(titles[name], format="%.3f") for name in _NUMBERS & titles.keys()}
    return titles | numbers


def draw_withheld(app: App, sides: Sequence[Side], language: Language) -> None:
    """Say if scores are hidden until the judge agrees with people."""
    if evaluation_of(app).withheld_metrics(sides):
        st.caption(label("judge_withheld", language))


def setting_name(name: str, language: Language) -> str:
    """Return `deep/dense` as "Deep, Meaning only"; names of libraries and models stay."""
    if name == CLASSIC.name:
        return label("run_classic", language)
    keys = {mode: f"mode_{mode}" for mode in MODES} | {one: f"strategy_{one}" for one in STRATEGIES}
    return ", ".join(label(keys[part], language) if part in keys else part for part in name.split("/"))


def side_name(run: RunView, setting: str, language: Language) -> str:
    """Return the name of a run under a setting, with the run's time: several runs may be of one question set."""
    return f"{shorten(run.name, 30)} · {setting_name(setting, language)} · {format_time(run.created_at)}"


def draw_setting_choice(key: str, language: Language, *, mode: str = "fast") -> Setting:
    """Draw the choice of a mode, including Classic, and of a strategy; return the setting."""
    modes = (*MODES, CLASSIC.name)
    selected = st.selectbox(
        label("run_mode", language),
        modes,
        index=modes.index(mode),
        key=f"{key}-mode",
        format_func=lambda one: label("run_classic" if one == CLASSIC.name else f"mode_{one}", language),
    )
    strategy = st.selectbox(
        label("run_strategy", language),
        ("", *STRATEGIES),
        key=f"{key}-strategy",
        format_func=lambda name: strategy_name(name, language) if name else label("run_as_set", language),
    )
    return CLASSIC if selected == CLASSIC.name else Setting(selected or mode, strategy or "")
