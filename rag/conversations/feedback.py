"""Ratings of answers, with a reason and a corrected answer, exported as the rows of a question set.

A set is two files: `pages.jsonl` {"url", "title", "lang", "text"} and `questions.jsonl` {"id", "question", "lang",
"answers": [text], "evidence": [{"url", "quote"}]}, as `benchmarks` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from rag.checking.rules import occurs_in
from rag.conversations.conversations import Conversations
from rag.reasoning.questions import find_history
from rag.store.sql.database import Database
from rag.text import question_language, split_sentences
from rag.types import Page

REASONS: Final = ("wrong", "incomplete", "wrong_source", "not_in_pages", "outdated", "language", "other")
"""Reasons for a bad rating; the screens have a label for each."""

PageOf = Callable[[str, str], Page | None]
"""A function that returns a page by its library and url_hash."""


class Feedback:
    """Users' ratings of answers. Thread-safe."""

    def __init__(
        self, database: Database, conversations: Conversations, on_rated: Callable[[str, int], object] | None = None
    ) -> None:
        """`on_rated` gets the id of a run whose answer was rated, and the rating."""
        self._database = database
        self._on_rated = on_rated
        self._conversations = conversations

    def rate(
        self,
        turn_id: str,
        rating: Literal[-1, 1],
        *,
        owner: str = "",
        reason: str = "",
        comment: str = "",
        correction: str = "",
    ) -> None:
        """Store the owner's rating of a turn's answer, replacing any earlier one.

        The question, its passages and its settings are stored with it, so that exports need no conversation. Raises
        RagError("turn_unknown").
        """
        turn = self._conversations.turn(turn_id, owner)
        library = self._conversations.conversation(turn.conversation_id, owner).library
        data: dict[str, Any] = {
            "reason": reason if reason in REASONS else "",
            "comment": comment.strip(),
            "correction": correction.strip(),
            "question": turn.question,
            "settings": dict(turn.settings),
        }
        if (answer := turn.answer) is not None:
            data |= {
                "standalone": answer.standalone,
                "before": find_history(answer.steps),
                "text": answer.text,
                "outcome": answer.outcome,
                "reasoner": answer.reasoner,
                "passages": [passage.id for passage in answer.passages],
                "pages": list(dict.fromkeys(passage.url_hash for passage in answer.passages)),
                "homes": {passage.url_hash: passage.library for passage in answer.passages if passage.library},
                "evidence": [{"url": one.url, "quote": one.quote} for one in answer.citations],
            }
        self._database.feedback.save(turn_id, library, owner, rating=rating, data=data)
        if self._on_rated is not None and turn.run_id:
            self._on_rated(turn.run_id, rating)

    def details(self, turn_id: str, owner: str = "") -> dict[str, str]:
        """Return the owner's `reason`, `comment` and `correction`, empty if there are none."""
        row = self._database.feedback.for_turn(turn_id, owner) or {"data": {}}
        return {name: str(row["data"].get(name, "")) for name in ("reason", "comment", "correction")}

    def withdraw(self, turn_id: str, owner: str = "") -> None:
        self._database.feedback.delete(turn_id, owner)

    def questions(self, library: str, page_of: PageOf, owner: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of `questions.jsonl`, oldest first, with `rating`, `reason` and `settings` added.

        The answer is the correction, else the quotes of an answer that was rated good. The evidence is the quotes of
        a good answer; for a correction, the sentences of the answer's pages that contain it. A bad answer without a
        correction has neither: its question is asked, but not scored. `owner` selects the ratings of one user.
        """
        return [_row(row, page_of) for row in self._database.feedback.for_library(library, owner)]

    def pages(self, library: str, page_of: PageOf, owner: str | None = None) -> Iterator[dict[str, str]]:
        """Yield the rows of `pages.jsonl`: the current texts of the pages that the answers were written from."""
        rows = self._database.feedback.for_library(library, owner)
        for place in dict.fromkeys(place for row in rows for place in _places(row)):
            if (page := page_of(*place)) is not None:
                yield {"url": page.url, "title": page.title, "lang": page.language, "text": page.text}


def _places(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the library and url_hash of each page that an answer was written from."""
    homes = row["data"].get("homes", {})
    return [(homes.get(url_hash, row["library"]), url_hash) for url_hash in row["data"].get("pages", ())]


def _row(row: Mapping[str, Any], page_of: PageOf) -> dict[str, Any]:
    data = row["data"]
    question = data.get("standalone") or data.get("question", "")
    correction, is_good = data.get("correction", ""), row["rating"] > 0
    evidence = list(data.get("evidence", ())) if is_good and not correction else []
    if correction:
        evidence = [
            {"url": page.url, "quote": page.text[start:end]}
            for place in _places(row)
            if (page := page_of(*place)) is not None
            for start, end in split_sentences(page.text)
            if occurs_in(correction, page.text[start:end])
        ]
    answers = [correction] if correction else [quote["quote"] for quote in evidence]
    return {
        "id": row["id"],
        "question": question,
        "lang": question_language(question),
        "history": [{"question": earlier, "answer": ""} for earlier in data.get("before", ())],
        "answers": answers,
        "evidence": evidence,
        "rating": row["rating"],
        "reason": data.get("reason", ""),
        "settings": data.get("settings", {}),
    }
