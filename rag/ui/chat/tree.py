"""A search tree during its run and below its answer: a picture, and the same as an expandable list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.checking.fragments import text_fragment
from rag.conversations.trees import State, TreeNode, nodes_of
from rag.locales import say, sentences
from rag.types import Answer, Citation, Notice
from rag.ui.chat.budget import draw_run_controls, draw_usage
from rag.ui.chat.tree_branch import draw_continue, tree_anchor
from rag.ui.chat.tree_picture import NARROW, SIGNS, WIDE, linked_pictures, picture, state_word
from rag.ui.kit.answers import home_of, libraries_of
from rag.ui.kit.escape import escape_line, is_web_url, web_link
from rag.ui.kit.live import LiveRun
from rag.ui.kit.parts import duration
from rag.ui.kit.session import session
from rag.ui.kit.sources import Source, draw_reader
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_COLORS: dict[State, str] = {"answered": "green", "failed": "red", "running": "primary"}
_BADGES = {2: "green", 1: "orange", 0: "gray"}


def draw_live_tree(app: App, turn: TurnView, live: LiveRun, language: Language) -> None:
    """Draw the budget, its controls, and the questions."""
    with st.container(key=f"tree-live-{turn.id}", gap="small"):
        draw_usage(live, language)
        if not live.text:
            draw_run_controls(app, turn, live, language)
        nodes = nodes_of(live.tree)
        st.html(linked_pictures(nodes, language, "", {"wide": WIDE, "narrow": NARROW}))
        st.markdown("\n".join(f"{'  ' * node.depth}- {_head(node, language)}" for node in nodes))


def tree_head(answer: Answer, language: Language) -> str:
    """Return the numbers of questions and graded passages; empty without a tree."""
    rows = answer.trail.get("tree")
    passages = {row["passage"] for row in rows or () if row["passage"]}
    return label("tree_way", language, questions=len(nodes_of(rows)), passages=len(passages)) if rows else ""


def draw_tree(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    nodes = nodes_of(answer.trail["tree"])
    with st.container(key=f"tree-open-{turn.id}", gap="small"):
        _draw_picture(nodes, language, key=turn.id)
        for node in nodes:
            _draw_node(app, library, turn, answer, node, language)
        _draw_end(answer.trail, language)


def _draw_picture(nodes: Sequence[TreeNode], language: Language, *, key: str) -> None:
    st.html(linked_pictures(nodes, language, tree_anchor(key), {"wide": WIDE, "narrow": NARROW}))
    st.caption(label("tree_picture_hint", language, signs=_signs(nodes, language)))
    icon = ":material/download:"
    st.download_button(
        label("tree_as_svg", language), picture(nodes, language), file_name="tree.svg", mime="image/svg+xml",
        icon=icon, type="tertiary", on_click="ignore", key=f"tree-svg-{key}",
    )  # fmt: skip


def _signs(nodes: Sequence[TreeNode], language: Language) -> str:
    states = dict.fromkeys(node.state for node in nodes)
    return " · ".join(f"{escape_line(SIGNS[state][0])} {_sign_meaning(state, language)}" for state in states)


def _sign_meaning(state: State, language: Language) -> str:
    if state in ("linked", "refused"):
        return label(f"tree_sign_{state}", language)
    return say(Notice(f"tree_{state}"), language)


def _head(node: TreeNode, language: Language) -> str:
    suffix = "" if node.state == "answered" else f" :gray[· {state_word(node, language)}]"
    sign = f":{_COLORS.get(node.state, 'gray')}[**{SIGNS[node.state][0]}**]"
    return f"{sign} {node.number}\\. {escape_line(node.question)}{suffix}"


def _draw_node(app: App, library: str, turn: TurnView, answer: Answer, node: TreeNode, language: Language) -> None:
    """Draw a list entry, to which the picture's box links; its content is read when it is opened."""
    key = f"{turn.id}-{node.number}"
    with st.container(key=f"node-{node.depth}-{key}", gap=None):
        # Static markup with an id made of letters and digits only.
        st.html(f'<span class="place" id="{tree_anchor(turn.id)}-{node.number}"></span>')
        entry = st.expander(_head(node, language), key=f"entry-{key}", type="compact", on_change="rerun")
        if entry.open:
            with entry, st.container(key=f"in-node-{key}", gap="small"):
                _draw_inside(app, library, turn, node, language)
                draw_continue(app, library, turn, answer, node, language)


def _draw_inside(app: App, library: str, turn: TurnView, node: TreeNode, language: Language) -> None:
    row = node.row
    if node.completes:
        st.caption(label("tree_completes", language, title=escape_line(node.completes)))
    texts = app.reading(libraries_of(app, library, turn)).texts([verdict["url_hash"] for verdict in node.judged])
    for place, verdict in enumerate(node.judged):
        key, text = f"{turn.id}-{node.number}-{place}", texts.get(verdict["url_hash"], "")
        with st.container(key=f"verdict-{key}", gap=None):
            citation = _citation(verdict, text)
            _draw_verdict(verdict, text, language)
            draw_reader(Source(1, home_of(app, library, citation), citation), key, language)
    if not node.judged and node.state not in ("linked", "refused"):
        st.caption(label("tree_no_passages", language))
    if row["answer"]:
        st.markdown(f"**{label('tree_answer', language)}:** {escape_line(row['answer'])}")
    if row["checkpoint"]:
        st.caption(label("tree_used", language, calls=row["calls"], ms=duration(row["ms"], language)))
        _draw_state(app, turn, node, language)


def _citation(row: Mapping[str, Any], text: str) -> Citation:
    """Return the sentence behind the grade, if it is in the saved page; else the whole passage."""
    start, end = int(row["start"]), int(row["end"])
    at = text.find(row["quote"], start, end) if row["quote"] else -1
    start, end = (at, at + len(row["quote"])) if at >= 0 else (start, end)
    return Citation(0, row["url"], row["url_hash"], row["title"], text[start:end] or row["quote"], start, end)


def _draw_verdict(row: Mapping[str, Any], text: str, language: Language) -> None:
    score, cite = row["score"], _citation(row, text)
    title, by = row["title"] or row["url"], label(f"tree_by_{row['by']}", language)
    address = text_fragment(cite.url, text, cite.start, cite.end) if text and is_web_url(cite.url) else cite.url
    badge = f":{_BADGES[score]}-badge[{score} · {label(f'tree_score_{score}', language)}]"
    lines = [f"{badge} **{web_link(title, address)}** :gray[{by}]"]
    lines += [f"“{escape_line(row['quote'])}”"] if row["quote"] else []
    lines += [f":gray[{escape_line(row['reason'])}]"] if row["reason"] and row["by"] != "person" else []
    lines += [f"{say(Notice('tree_lacks'), language)}: {escape_line(row['missing'])}"] if row["missing"] else []
    st.markdown("  \n".join(lines))


def _draw_state(app: App, turn: TurnView, node: TreeNode, language: Language) -> None:
    """Draw the stored state of the question's graph."""
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


def _draw_end(trail: Mapping[str, Any], language: Language) -> None:
    if stop := trail.get("stop"):
        st.caption(f":material/flag: {_sentence(stop, language)}")
    if notes := dict.fromkeys(_sentence(note, language) for note in trail.get("notes", ())):
        st.caption(f":material/rule: {label('research_notes', language)}: {' · '.join(notes)}")


def _sentence(note: Mapping[str, Any], language: Language) -> str:
    has_text = note["code"] in sentences("en")
    return escape_line(say(Notice(note["code"], note.get("params", {})), language)) if has_text else ""
