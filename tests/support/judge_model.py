"""A script for ChatServer that judges passages by a table of verdicts, by question and text of the passage."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.types import Passage
from tests.support.answering import passage
from tests.support.chat_protocol import Reply, Request
from tests.support.research_model import form_of, verdicts_of

WHOLE = "When was the town founded in which the director of Grey Harbour was born?"
BORN, FOUNDED = "Where was Ilse Brandt born?", "When was Ostrava Moor founded?"
FILM = "Grey Harbour is a film of 1961. It was directed by Ilse Brandt."
LIFE = "Ilse Brandt was born in Ostrava Moor. She made nine films."
TOWN = "Ostrava Moor was founded in 1342. It has a market hall."
OTHER = "The harbour of Vale is grey in winter. Ships rest there."
ANSWER = "Grey Harbour was directed by Ilse Brandt [1]. She was born in Ostrava Moor [2], founded in 1342 [3]."

PAGES: Mapping[str, list[Passage]] = {
    WHOLE: [passage(1, FILM, title="Grey Harbour"), passage(4, OTHER, title="Vale")],
    BORN: [passage(2, LIFE, title="Ilse Brandt"), passage(1, FILM, title="Grey Harbour")],
    FOUNDED: [passage(3, TOWN, title="Ostrava Moor")],
}
VERDICTS: Mapping[tuple[str, str], Any] = {
    (WHOLE, FILM): (1, BORN, "It was directed by Ilse Brandt."),
    (BORN, LIFE): (1, FOUNDED, "Ilse Brandt was born in Ostrava Moor."),
    (FOUNDED, TOWN): (2, "", "Ostrava Moor was founded in 1342."),
}
_QUESTION = re.compile(r"^(?:Question|问题)[:：] ?(.+)$", re.MULTILINE)

_PARENT_QUESTION = re.compile(r"^(?:Part of|更大的问题)[:：] ?(.+)$", re.MULTILINE)

Judge = Callable[[str, str, str], Any]


def by_table(question: str, _: str, text: str) -> Any:
    return VERDICTS.get((question, text), (0, "", ""))


@dataclass
class JudgeModel:
    """A script; `judge` returns (score, missing, quote) for a question, the question that it is part of, and a text.

    If set, `reply` is sent instead of the verdicts.
    """

    judge: Judge = by_table
    answer: Any = ANSWER
    reply: Any = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply | str:
        form = form_of(request)
        self.asked.append(form)
        if form == "JudgeReply":
            return self.reply if self.reply is not None else Reply(json.dumps({"passages": self._verdicts(request)}))
        if form == "Judgements":
            count = len(re.findall(r"^\d+\. ", request.last, re.MULTILINE))
            return Reply(json.dumps(verdicts_of(dict.fromkeys(range(1, count + 1), True))))
        return self.answer if isinstance(self.answer, Reply) else Reply(self.answer)

    def _verdicts(self, request: Request) -> list[dict[str, Any]]:
        question = _QUESTION.findall(request.last)[-1]
        whole = next(iter(_PARENT_QUESTION.findall(request.last)[-1:]), question)
        verdicts = []
        for number, text in request.passages:
            score, missing, quote = self.judge(question, whole, text)
            verdicts.append({"number": number, "score": score, "missing": missing, "reason": "so", "quote": quote})
        return verdicts
