from __future__ import annotations

from rag.agent.citing.terms import read, stem


def test_content_words_by_their_stems_and_numbers_by_their_amount() -> None:
    terms = read("The guilds' bridges of Anvil were opened on 7 March 1932.").terms
    assert [term.key for term in terms] == ["guild", "bridg", "anvil", "open", "#7", "#3", "#1932"]
    assert [term.kind for term in terms if term.kind == "name"] == ["name"]
    assert [term.written for term in terms if term.kind == "number"] == [True, False, True]


def test_clauses_and_what_they_open_with() -> None:
    terms = read("The Grey Tower of Anvil is high, and the guild left.").terms
    assert [(term.key, term.clause) for term in terms if term.opens] == [
        ("grey", 0), ("tower", 0), ("guild", 2), ("left", 2),
    ]  # fmt: skip


def test_denials_are_counted() -> None:
    assert [read(text).denials for text in ("It isn't, and never was.", "没有开放。", "It is.", "非常好")] == [
        2,
        1,
        0,
        0,
    ]


def test_inflections_share_a_stem() -> None:
    assert len({stem(word) for word in ("stop", "stops", "stopped", "stopping")}) == 1
