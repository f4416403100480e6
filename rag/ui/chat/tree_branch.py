"""Continuing a search tree from one of its questions with a person's changes, and comparing the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import streamlit as st

from rag.conversations.trees import TreeNode, nodes_of
from rag.locales import say
from rag.runs.options import TreeOrder
from rag.types import Answer
from rag.ui.chat.asking import ask
from rag.ui.chat.tree_picture import NARROW, linked_pictures
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.render import answer_markdown
from rag.ui.kit.session import chat_in_use, session
from rag.ui.kit.sources import anchor_of
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_LONGEST = 400
_EXCLUDED = "out"
Verdict = int | str


def tree_anchor(turn_id: str) -> str:
    """Return the prefix of the anchors in an answer's tree."""
    return f"tree-{anchor_of(turn_id).partition('-')[2]}"


def draw_continue(app: App, library: str, turn: TurnView, answer: Answer, node: TreeNode, language: Language) -> None:
    """Draw the form that asks the question again with changes."""
    key = f"{turn.id}-{node.number}"
    entry = st.expander(
        label("tree_go_on", language), icon=":material/call_split:", type="compact", key=f"go-{key}", on_change="rerun"
    )
    if not entry.open:
        return
    with entry, st.form(f"tree-form-{key}", border=False):
        st.caption(label("tree_go_on_lead", language))
        st.text_input(label("tree_question", language), node.question, key=f"tree-text-{key}", max_chars=_LONGEST)
        for place, row in enumerate(node.judged):
            _draw_choice(row, f"{key}-{place}", language)
        _draw_settings(app, key, language)
        submitted = st.form_submit_button(label("tree_go_on_do", language), type="primary", key=f"tree-do-{key}")
    if submitted:
        change = _changes(node, key) | {"turn": turn.id, "checkpoint": answer.trail.get("checkpoint", "")}
        settings = {name: change[name] for name in ("tree_order", "judge_each") if name in change}
        ask(app, library, turn.question, "judge", standalone=answer.standalone, branch=change, **settings)


def _draw_choice(row: Mapping[str, Any], key: str, language: Language) -> None:
    """Draw a passage with its verdict and, for a 1, what it lacks."""
    verdicts: list[Verdict] = [2, 1, 0, _EXCLUDED]
    left, right = st.columns(2)
    left.selectbox(
        escape_line(shorten(row["title"] or row["url"], 60)),
        verdicts,
        index=verdicts.index(row["score"]),
        format_func=lambda score: verdict_name(score, language),
        key=f"tree-score-{key}",
    )
    right.text_input(label("tree_missing_for_1", language), row["missing"], key=f"tree-lacks-{key}", max_chars=_LONGEST)


def verdict_name(score: Verdict, language: Language) -> str:
    name = label(f"tree_score_{score}", language)
    return name if score == _EXCLUDED else f"{score} · {name}"


def _draw_settings(app: App, key: str, language: Language) -> None:
    choices, orders = session().choices, get_args(TreeOrder)
    st.selectbox(
        label("option_tree_order", language),
        orders,
        index=orders.index(choices.tree_order),
        format_func=lambda name: label(f"tree_order_{name}", language),
        key=f"tree-order-{key}",
    )
    if chat_in_use(app) is not None:
        st.toggle(label("option_judge_each", language), choices.judge_each, key=f"tree-each-{key}")


def _changes(node: TreeNode, key: str) -> dict[str, Any]:
    """Return the form's changes against the tree and the options."""
    state, choices = st.session_state, session().choices
    change: dict[str, Any] = {"node": node.row["node"]}
    text = " ".join(str(state[f"tree-text-{key}"] or "").split())
    if text and text != node.question:
        change["question"] = text
    entries = {row["passage"]: _read_verdict(f"{key}-{place}") for place, row in enumerate(node.judged)}
    if excluded := [passage for passage, (score, _) in entries.items() if score == _EXCLUDED]:
        change["without"] = excluded
    before = {row["passage"]: (row["score"], row["missing"]) for row in node.judged}
    verdicts = {
        passage: {"score": score, "missing": missing}
        for passage, (score, missing) in entries.items()
        if score != _EXCLUDED and (score != before[passage][0] or (score == 1 and missing != before[passage][1]))
    }
    if verdicts:
        change["verdicts"] = verdicts
    settings = {"tree_order": state[f"tree-order-{key}"], "judge_each": state.get(f"tree-each-{key}", False)}
    return change | {name: value for name, value in settings.items() if value != getattr(choices, name)}


def _read_verdict(key: str) -> tuple[Verdict, str]:
    score = st.session_state[f"tree-score-{key}"]
    missing = " ".join(str(st.session_state[f"tree-lacks-{key}"] or "").split())
    return score, missing if score == 1 else ""


def draw_origin(answer: Answer, language: Language) -> None:
    """Draw, above an answer that continues another tree, a link to it, the question, and the changes."""
    if branch := answer.trail.get("branch"):
        link = f"[{label('tree_earlier', language)}](#{tree_anchor(branch['turn'])})" if branch.get("turn") else ""
        text = label(
            "tree_branch", language, earlier=link, changes=_describe(branch, answer.trail.get("tree", ()), language)
        )
        st.caption(f":material/call_split: {text}")


def _describe(branch: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """Describe the question where a branch starts, and its changes, in a few words."""
    nodes = [row for row in rows if row["node"] == branch["node"]]
    titles = {row["passage"]: escape_line(shorten(row["title"] or row["url"], 60)) for row in nodes}
    parts = [escape_line(f"{branch['node'][1:]}. {shorten(nodes[0]['question'], 120)}")] if nodes else []
    parts += [label("tree_asked_anew", language)] if branch.get("question") else []
    for passage, verdict in branch.get("verdicts", {}).items():
        lacks = f" ({escape_line(verdict['missing'])})" if verdict["missing"] else ""
        parts.append(f"{titles.get(passage, '')}: {verdict_name(verdict['score'], language)}{lacks}")
    if excluded := branch.get("without"):
        parts.append(label("tree_without", language, count=len(excluded)))
    parts += [label(f"tree_order_{branch['tree_order']}", language)] if "tree_order" in branch else []
    parts += [label("option_judge_each", language)] if branch.get("judge_each") else []
    return " · ".join(parts)


def related_turns(turn: TurnView, turns: Sequence[TurnView]) -> list[TurnView]:
    """Return the turns whose trees this one continues, or which continue it."""
    from_, to = _origin(turn), turn.id
    return [
        one for one in turns if one.answer and one.answer.trail.get("tree") and (one.id == from_ or _origin(one) == to)
    ]


def _origin(turn: TurnView) -> str:
    return str(turn.answer.trail.get("branch", {}).get("turn", "")) if turn.answer else ""


def draw_comparison(turn: TurnView, answer: Answer, others: Sequence[TurnView], language: Language) -> None:
    """Draw two branches side by side, the earlier one on the left."""
    if not others:
        return
    panel = st.expander(
        label("tree_beside", language), icon=":material/compare:", type="compact",
        key=f"beside-{turn.id}", on_change="rerun",
    )  # fmt: skip
    if not panel.open:
        return
    with panel, st.container(key=f"beside-open-{turn.id}"):
        other = others[-1]
        if len(others) > 1:
            names = {one.id: _branch_name(one, language) for one in others}
            text = label("tree_beside_which", language)
            other = st.selectbox(text, others, format_func=lambda one: names[one.id], key=f"beside-which-{turn.id}")
        both = (
            [(other, other.answer), (turn, answer)]
            if _origin(turn) == other.id
            else [(turn, answer), (other, other.answer)]
        )
        for column, (one, its) in zip(st.columns(2), both, strict=True):
            with column:
                _draw_side(one, its or answer, language)


def _branch_name(turn: TurnView, language: Language) -> str:
    answer = turn.answer
    branch = answer.trail.get("branch") if answer else None
    return _describe(branch, answer.trail["tree"], language) if answer and branch else label("tree_first", language)


def _draw_side(turn: TurnView, answer: Answer, language: Language) -> None:
    st.markdown(f"**{_branch_name(turn, language)}**")
    st.markdown(answer_markdown(answer.text) if answer.text.strip() else label(f"outcome_{answer.outcome}", language))
    if answer.notice:
        st.caption(escape_line(say(answer.notice, language)))
    st.html(linked_pictures(nodes_of(answer.trail["tree"]), language, "", {"beside": NARROW}))
