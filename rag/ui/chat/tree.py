"""A search tree during its run and below its answer, drawn as a picture and as an expandable list.

The user can continue it from one of its questions, with changes, and compare the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import streamlit as st

from rag.checking.fragments import text_fragment
from rag.conversations.trees import State, TreeNode, nodes_of
from rag.locales import Language, label, say
from rag.runs.run import TreeOrder
from rag.types import Answer, Citation, Notice
from rag.ui.chat.asking import ask
from rag.ui.chat.diagrams import NARROW, SIGNS, WIDE, linked_diagrams, state_word, tree_diagram
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.markdown import answer_markdown, escape_line, is_web_url, shorten, web_link
from rag.ui.kit.parts import duration
from rag.ui.kit.passages import SourceSpan
from rag.ui.kit.runs import draw_end, draw_run_controls, draw_usage
from rag.ui.kit.session import Scope, chat_in_use, libraries_of, session
from rag.ui.kit.sources import anchor_of, draw_panel_link, library_of

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_COLORS: dict[State, str] = {"answered": "green", "failed": "red", "running": "primary"}
_BADGES = {2: "green", 1: "orange", 0: "gray"}
_LONGEST_QUESTION = 400
_EXCLUDED = "out"
Verdict = int | str


def draw_live_tree(app: App, turn: TurnView, live: LiveRun, language: Language) -> None:
    """Draw the budget, its controls, and the questions."""
    with st.container(key=f"tree-live-{turn.id}", gap="small"):
        draw_usage(live, language)
        if not live.text:
            draw_run_controls(app, turn, live, language)
        nodes = nodes_of(live.tree)
        st.html(linked_diagrams(nodes, language, "", {"wide": WIDE, "narrow": NARROW}))
        st.markdown("\n".join(f"{'  ' * node.depth}- {_head(node, language)}" for node in nodes))


def tree_summary(answer: Answer, language: Language) -> str:
    """Return the numbers of questions and graded passages; empty without a tree."""
    rows = answer.trail.get("tree")
    passages = {row["passage"] for row in rows or () if row["passage"]}
    return label("tree_way", language, questions=len(nodes_of(rows)), passages=len(passages)) if rows else ""


def draw_tree(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    nodes = nodes_of(answer.trail["tree"])
    signs = []
    for state in dict.fromkeys(node.state for node in nodes):
        is_link = state in ("linked", "refused")
        meaning = label(f"tree_sign_{state}", language) if is_link else say(Notice(f"tree_{state}"), language)
        signs.append(f"{escape_line(SIGNS[state][0])} {meaning}")
    with st.container(key=f"tree-open-{turn.id}", gap="small"):
        st.html(linked_diagrams(nodes, language, tree_anchor(turn.id), {"wide": WIDE, "narrow": NARROW}))
        st.caption(label("tree_picture_hint", language, signs=" · ".join(signs)))
        st.download_button(
            label("tree_as_svg", language), tree_diagram(nodes, language), file_name="tree.svg", mime="image/svg+xml",
            icon=":material/download:", type="tertiary", on_click="ignore", key=f"tree-svg-{turn.id}",
        )  # fmt: skip
        for node in nodes:
            _draw_node(app, library, turn, answer, node, language)
        draw_end(answer.trail.get("stop"), answer.trail.get("notes", ()), language)


def _head(node: TreeNode, language: Language) -> str:
    suffix = "" if node.state == "answered" else f" :gray[· {state_word(node, language)}]"
    sign = f":{_COLORS.get(node.state, 'gray')}[**{SIGNS[node.state][0]}**]"
    return f"{sign} {node.number}\\. {escape_line(node.question)}{suffix}"


def _draw_node(app: App, library: str, turn: TurnView, answer: Answer, node: TreeNode, language: Language) -> None:
    """Draw the list entry that a node's box links to; its content is loaded when it is opened."""
    key, row = f"{turn.id}-{node.number}", node.row
    with st.container(key=f"node-{node.depth}-{key}", gap=None):
        # Static markup, with an id of letters, digits and hyphens only.
        st.html(f'<span class="place" id="{tree_anchor(turn.id)}-{node.number}"></span>')
        entry = st.expander(_head(node, language), key=f"entry-{key}", type="compact", on_change="rerun")
    if not entry.open:
        return
    libraries = libraries_of(app, library, Scope.from_json(turn.settings.get("scope", {})))
    texts = app.library_view(libraries).texts([verdict["url_hash"] for verdict in node.judged])
    with entry, st.container(key=f"in-node-{key}", gap="small"):
        if node.completes:
            st.caption(label("tree_completes", language, title=escape_line(node.completes)))
        for place, verdict in enumerate(node.judged):
            text = texts.get(verdict["url_hash"], "")
            _draw_verdict(app, library, verdict, text, language, key=f"{key}-{place}")
        if not node.judged and node.state not in ("linked", "refused"):
            st.caption(label("tree_no_passages", language))
        if row["answer"]:
            st.markdown(f"**{label('tree_answer', language)}:** {escape_line(row['answer'])}")
        if row["checkpoint"]:
            st.caption(label("tree_used", language, calls=row["calls"], ms=duration(row["ms"], language)))
            _draw_state(app, turn, node, language)
        _draw_continue(app, library, turn, answer, node, language)


def _draw_verdict(app: App, library: str, row: Mapping[str, Any], text: str, language: Language, *, key: str) -> None:
    """Draw a grade, with a link to the sentence behind it if that is in the saved page, else to the whole passage."""
    start, end, score = int(row["start"]), int(row["end"]), row["score"]
    at = text.find(row["quote"], start, end) if row["quote"] else -1
    start, end = (at, at + len(row["quote"])) if at >= 0 else (start, end)
    cite = Citation(0, row["url"], row["url_hash"], row["title"], text[start:end] or row["quote"], start, end)
    title, by = row["title"] or row["url"], label(f"tree_by_{row['by']}", language)
    address = text_fragment(cite.url, text, start, end) if text and is_web_url(cite.url) else cite.url
    badge = f":{_BADGES[score]}-badge[{score} · {label(f'tree_score_{score}', language)}]"
    lines = [f"{badge} **{web_link(title, address)}** :gray[{by}]"]
    lines += [f"“{escape_line(row['quote'])}”"] if row["quote"] else []
    lines += [f":gray[{escape_line(row['reason'])}]"] if row["reason"] and row["by"] != "person" else []
    lines += [f"{say(Notice('tree_lacks'), language)}: {escape_line(row['missing'])}"] if row["missing"] else []
    with st.container(key=f"verdict-{key}", gap=None):
        st.markdown("  \n".join(lines))
        draw_panel_link(SourceSpan(1, library_of(app, library, cite), cite), key, language)


def _draw_state(app: App, turn: TurnView, node: TreeNode, language: Language) -> None:
    state = st.expander(
        label("tree_state", language), icon=":material/data_object:", type="compact",
        key=f"state-{turn.id}-{node.number}", on_change="rerun",
    )  # fmt: skip
    if state.open:
        with state:
            values = app.conversations.state(turn.conversation_id, node.row["checkpoint"], session().owner)
            if values:
                st.json(values, expanded=1)
            else:
                st.caption(label("tree_state_gone", language))


def tree_anchor(turn_id: str) -> str:
    """Return the prefix of the anchors in an answer's tree."""
    return f"tree-{anchor_of(turn_id).partition('-')[2]}"


def _draw_continue(app: App, library: str, turn: TurnView, answer: Answer, node: TreeNode, language: Language) -> None:
    """Draw the form that asks the question again with changes."""
    choices, orders = session().choices, get_args(TreeOrder)
    key = f"{turn.id}-{node.number}"
    entry = st.expander(
        label("tree_go_on", language), icon=":material/call_split:", type="compact", key=f"go-{key}", on_change="rerun"
    )
    if not entry.open:
        return
    with entry, st.form(f"tree-form-{key}", border=False):
        st.caption(label("tree_go_on_lead", language))
        st.text_input(
            label("tree_question", language), node.question, key=f"tree-text-{key}", max_chars=_LONGEST_QUESTION
        )
        for place, row in enumerate(node.judged):
            _draw_verdict_choice(row, f"{key}-{place}", language)
        st.selectbox(
            label("option_tree_order", language),
            orders,
            index=orders.index(choices.tree_order),
            format_func=lambda name: label(f"tree_order_{name}", language),
            key=f"tree-order-{key}",
        )
        if chat_in_use(app) is not None:
            st.toggle(label("option_judge_each", language), choices.judge_each, key=f"tree-each-{key}")
        submitted = st.form_submit_button(label("tree_go_on_do", language), type="primary", key=f"tree-do-{key}")
    if submitted:
        change = _read_changes(node, key) | {"turn": turn.id, "checkpoint": answer.trail.get("checkpoint", "")}
        settings = {name: change[name] for name in ("tree_order", "judge_each") if name in change}
        ask(app, library, turn.question, "judge", standalone=answer.standalone, branch=change, **settings)


def _draw_verdict_choice(row: Mapping[str, Any], key: str, language: Language) -> None:
    """Draw fields for a passage's verdict and, if that is 1, for what the passage lacks."""
    verdicts: list[Verdict] = [2, 1, 0, _EXCLUDED]
    left, right = st.columns(2)
    left.selectbox(
        escape_line(shorten(row["title"] or row["url"], 60)),
        verdicts,
        index=verdicts.index(row["score"]),
        format_func=lambda score: _verdict_name(score, language),
        key=f"tree-score-{key}",
    )
    right.text_input(
        label("tree_missing_for_1", language), row["missing"], key=f"tree-lacks-{key}", max_chars=_LONGEST_QUESTION
    )


def _verdict_name(score: Verdict, language: Language) -> str:
    name = label(f"tree_score_{score}", language)
    return name if score == _EXCLUDED else f"{score} · {name}"


def _read_changes(node: TreeNode, key: str) -> dict[str, Any]:
    """Return the form's changes relative to the tree and the tab's options."""
    state, choices = st.session_state, session().choices
    change: dict[str, Any] = {"node": node.row["node"]}
    text = " ".join(str(state[f"tree-text-{key}"] or "").split())
    if text and text != node.question:
        change["question"] = text
    excluded: list[str] = []
    verdicts: dict[str, dict[str, Any]] = {}
    for place, row in enumerate(node.judged):
        score = state[f"tree-score-{key}-{place}"]
        missing = " ".join(str(state[f"tree-lacks-{key}-{place}"] or "").split()) if score == 1 else ""
        if score == _EXCLUDED:
            excluded.append(row["passage"])
        elif score != row["score"] or (score == 1 and missing != row["missing"]):
            verdicts[row["passage"]] = {"score": score, "missing": missing}
    change |= {name: value for name, value in (("without", excluded), ("verdicts", verdicts)) if value}
    settings = {"tree_order": state[f"tree-order-{key}"], "judge_each": state.get(f"tree-each-{key}", False)}
    return change | {name: value for name, value in settings.items() if value != getattr(choices, name)}


def draw_origin(answer: Answer, language: Language) -> None:
    """Draw a link to the tree that an answer continues, with the question and the changes."""
    if branch := answer.trail.get("branch"):
        link = f"[{label('tree_earlier', language)}](#{tree_anchor(branch['turn'])})" if branch.get("turn") else ""
        text = label(
            "tree_branch",
            language,
            earlier=link,
            changes=_describe_branch(branch, answer.trail.get("tree", ()), language),
        )
        st.caption(f":material/call_split: {text}")


def _describe_branch(branch: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """Describe the question where a branch starts, and its changes, in a few words."""
    nodes = [row for row in rows if row["node"] == branch["node"]]
    titles = {row["passage"]: escape_line(shorten(row["title"] or row["url"], 60)) for row in nodes}
    parts = [escape_line(f"{branch['node'][1:]}. {shorten(nodes[0]['question'], 120)}")] if nodes else []
    parts += [label("tree_asked_anew", language)] if branch.get("question") else []
    for passage, verdict in branch.get("verdicts", {}).items():
        lacks = f" ({escape_line(verdict['missing'])})" if verdict["missing"] else ""
        parts.append(f"{titles.get(passage, '')}: {_verdict_name(verdict['score'], language)}{lacks}")
    if excluded := branch.get("without"):
        parts.append(label("tree_without", language, count=len(excluded)))
    parts += [label(f"tree_order_{branch['tree_order']}", language)] if "tree_order" in branch else []
    parts += [label("option_judge_each", language)] if branch.get("judge_each") else []
    return " · ".join(parts)


def _origin(turn: TurnView) -> str:
    return str(turn.answer.trail.get("branch", {}).get("turn", "")) if turn.answer else ""


@st.fragment
def draw_comparison(turn: TurnView, answer: Answer, turns: Sequence[TurnView], language: Language) -> None:
    """Draw the tree beside one that it continues, or which continues it; the earlier one is on the left."""
    related = (one for one in turns if one.id == _origin(turn) or _origin(one) == turn.id)
    others = [one for one in related if one.answer and one.answer.trail.get("tree")]
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
                its = its or answer
                st.markdown(f"**{_branch_name(one, language)}**")
                text = answer_markdown(its.text) if its.text.strip() else label(f"outcome_{its.outcome}", language)
                st.markdown(text)
                if its.notice:
                    st.caption(escape_line(say(its.notice, language)))
                st.html(linked_diagrams(nodes_of(its.trail["tree"]), language, "", {"beside": NARROW}))


def _branch_name(turn: TurnView, language: Language) -> str:
    answer = turn.answer
    branch = answer.trail.get("branch") if answer else None
    return (
        _describe_branch(branch, answer.trail["tree"], language) if answer and branch else label("tree_first", language)
    )
