"""A script for ChatServer that plans, queries, reads, decides and writes by rules; each reply can be overridden."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.chat_protocol import PASSAGE, Reply, Request


def form_of(request: Request) -> str:
    """Return the name of the schema that the reply must have; empty for the report."""
    form = request.body.get("response_format") or {}
    return str(form.get("json_schema", {}).get("name", ""))


def step(question: str, **more: Any) -> dict[str, Any]:
    return {"question": question, "justification": "needed", "tool": "library", **more}


def verdicts_of(supported: Mapping[int, bool]) -> dict[str, Any]:
    """Return the reply of a judge: whether each statement, by number, is supported."""
    words = {True: "supported", False: "unsupported"}
    return {"verdicts": [{"number": n, "verdict": words[one], "relevant": True} for n, one in supported.items()]}


@dataclass
class ResearchModel:
    """A script; `replies[form]` is a value, or a function of the request; `report` is the report's text."""

    steps: Sequence[Mapping[str, Any]] = (step("When did Mount Aso erupt?"), step("When was the bridge opened?"))
    replies: dict[str, Any] = field(default_factory=dict)
    report: Any = "Mount Aso erupted in 1953 [1]. The bridge was opened in 1932 [2]."
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply | str:
        form = form_of(request)
        self.asked.append(form)
        reply = self.replies.get(form, self._default_reply(form)) if form else self.report
        value = reply(request) if callable(reply) else reply
        return value if isinstance(value, Reply | str) else Reply(json.dumps(value, ensure_ascii=False))

    def _default_reply(self, form: str) -> Any:
        return {
            "PlanReply": self._plan,
            "QueryReply": self._query,
            "ReadReply": self._read,
            "ChoiceReply": {"action": "finish", "justification": "enough", "steps": []},
            "MendReply": {"sentences": []},
            "Judgements": self._make_verdicts,
        }[form]

    def _plan(self, _: Request) -> Any:
        aspects = [str(one["question"]) for one in self.steps]
        return {"aspects": aspects, "steps": list(self.steps), "unclear": ""}

    def _query(self, request: Request) -> Any:
        sub_question = re.findall(r"^(?:Sub-question|子问题): (.+)$", request.last, re.MULTILINE)[-1]
        return {"query": sub_question, "search": "hybrid", "reason": "names", "section": ""}

    def _read(self, request: Request) -> Any:
        sentences = [{"number": n, "sentence": text.split(". ")[0]} for n, text in request.passages]
        met = re.findall(r"^(\d+)\. ", PASSAGE.sub("", request.last), re.MULTILINE)
        return {"sentences": sentences, "summary": "Something was found.", "met": [int(n) for n in met]}

    def _make_verdicts(self, request: Request) -> Any:
        """Return the verdicts: a statement is supported if its numbers are in the passages."""
        block = " ".join(text for _, text in request.passages)
        statements = re.findall(r"^(\d+)\. (.+)$", PASSAGE.sub("", request.last), re.MULTILINE)
        years = set(re.findall(r"\d{3,}", block))
        return verdicts_of({int(n): set(re.findall(r"\d{3,}", text)) <= years for n, text in statements})
