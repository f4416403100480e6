"""Runs: question sets asked under one or more settings, with progress and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.config import STRATEGIES
from rag.evaluation.evaluation import Side
from rag.evaluation.settings import CLASSIC, Setting, grid
from rag.locales import say
from rag.ui.evaluation.charts import calibration, plot
from rag.ui.evaluation.sets import choose_set
from rag.ui.kit.attempt import accepted, attempt
from rag.ui.kit.choices import MODES
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import data_table, duration, metric_name, moment, strategy_name
from rag.ui.kit.session import chat_in_use, evaluation_of, session, whose
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.evaluation.runs import RunView
    from rag.evaluation.sets import SetView

_POLL_SECONDS = 1.0
_Action = tuple[str, str, Callable[[str], object]]
_SHOWN = 20


def draw_runs(app: App, library: str, language: Language) -> None:
    chosen = choose_set(evaluation_of(app).sets.sets(library), language)
    if chosen is None:
        st.info(label("sets_empty", language), icon=":material/quiz:")
        return
    with st.container(border=True, key="run-new"):
        _draw_new(app, chosen, language)
    _draw_over_time(app, library, language)
    runs = evaluation_of(app).runs.runs(library)[:_SHOWN]
    for run in runs:
        with st.container(border=True, key=f"run-{run.id}"):
            every = _POLL_SECONDS if run.state == "running" else None
            st.fragment(_draw_run, run_every=every)(app, run.id, language)


def _draw_over_time(app: App, library: str, language: Language) -> None:
    """What answers came to as people asked, where they are scored."""
    scored = [(when, scores.get("faithfulness")) for when, scores in evaluation_of(app).over_time(library)]
    points = [(float(at), value, "") for at, (_, value) in enumerate(scored) if value is not None]
    if len(points) > 1:
        st.image(plot(label("chart_time", language), points), width="content")


def _draw_new(app: App, chosen: SetView, language: Language) -> None:
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
    judged = chat_in_use(app) and st.toggle(
        label("run_judge", language), key="run-judge", help=label("run_judge_hint", language)
    )
    settings = grid(modes, strategies, classic=classic)
    with st.container(horizontal=True, vertical_alignment="center"):
        begin = st.button(label("run_begin", language), type="primary", icon=":material/play_arrow:", key="run-begin")
        st.caption(
            label("run_count", language, questions=chosen.cases - chosen.drafts, settings=len(settings)),
            width="content",
        )
    if begin:
        how: dict[str, Any] = {"person": whose(), "chat": session().chat, "judge": bool(judged)}
        if accepted(lambda: evaluation_of(app).evaluate(chosen.id, settings, **how), language):
            st.rerun()


def _draw_run(app: App, run_id: str, language: Language) -> None:
    run = evaluation_of(app).runs.run(run_id)
    state = label(f"run_state_{run.state}", language)
    st.markdown(f"**{escape_line(run.name)}** :gray[{moment(run.created_at)} · {state}]")
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
    """A line for each setting: what the run is about, at a glance."""
    lines = []
    means_of = evaluation_of(app).main_figures(run.id)
    for setting in run.settings:
        told = [
            label(
                f"main_{name.partition('@')[0]}",
                language,
                value=duration(value * 1000, language) if name == "seconds" else f"{value:.0%}",
            )
            for name, value in means_of[setting.name].items()
            if value or name != "failed"
        ]
        named = f":gray[{escape_line(setting_name(setting.name, language))}:] " if len(run.settings) > 1 else ""
        lines.append(f"{named}{' · '.join(told)}")
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
            told = label(f"run_{name}", language)
            if st.button(told, icon=f":material/{icon}:", type="tertiary", key=f"run-{name}-{run.id}"):
                attempt(partial(action, run.id))
                st.rerun()


def _draw_figures(app: App, run: RunView, language: Language) -> None:
    """Metrics with their intervals; how many questions each could be judged by stands beside it."""
    names = [setting.name for setting in run.settings]
    setting = names[0]
    if len(names) > 1:
        how: dict[str, Any] = {"format_func": partial(setting_name, language=language), "key": f"run-setting-{run.id}"}
        setting = st.selectbox(label("run_setting", language), names, **how) or setting
    side = Side(run.id, setting)
    rows = [
        {
            "metric": metric_name(one.metric.name, language),
            "value": round(one.value.value, 4),
            "interval": f"{one.value.low:.3f} – {one.value.high:.3f}",
            "judged": f"{one.n} / {one.of}",
        }
        for one in evaluation_of(app).figures(side)
    ]
    named = {name: label(f"figure_{name}", language) for name in ("metric", "value", "interval", "judged")}
    data_table(rows, key=f"figures-{run.id}", column_config=named, hide_index=True)
    draw_withheld(app, [side], language)
    told, name = label("sets_download", language, form="RAGAS"), f"{run.name}.jsonl"
    export = partial(evaluation_of(app).export, run.id, setting)
    st.download_button(told, export, name, "application/jsonl", type="tertiary", key=f"download-{run.id}")
    if len(bins := evaluation_of(app).calibration(side)) > 1:
        st.image(calibration(bins, language), width="content")


def draw_withheld(app: App, sides: Sequence[Side], language: Language) -> None:
    """Say which scores are hidden until the judge agrees with people."""
    if evaluation_of(app).withheld(sides):
        st.caption(label("judge_withheld", language))


def setting_name(name: str, language: Language) -> str:
    """`deep/dense` as "Deep, Meaning only"; the name of a library or a model stays as it is."""
    if name == CLASSIC.name:
        return label("run_classic", language)
    known = {mode: f"mode_{mode}" for mode in MODES} | {one: f"strategy_{one}" for one in STRATEGIES}
    return ", ".join(label(known[part], language) if part in known else part for part in name.split("/"))


def setting_choice(key: str, language: Language, *, mode: str = "fast") -> Setting:
    """A mode, Classic among them, and a strategy, for one side of a comparison."""
    modes = (*MODES, CLASSIC.name)
    chosen = st.selectbox(
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
    return CLASSIC if chosen == CLASSIC.name else Setting(chosen or mode, strategy or "")
