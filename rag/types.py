"""The values that travel between the rooms: plain, frozen, without behaviour that could fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RunMode = Literal["fast", "deep", "research", "judge", "summary", "tool"]
Outcome = Literal["answered", "caveat", "not_in_pages", "failed", "conversation"]
IngestStatus = Literal["added", "unchanged", "updated", "duplicate", "held", "gone", "skipped", "failed"]
SAVED: frozenset[IngestStatus] = frozenset({"added", "updated", "unchanged", "duplicate"})
"""After these the library holds the text of the source."""
PageStatus = Literal["active", "gone"]
PageSource = Literal["web", "file", "import", "note"]
Decision = Literal["", "retry", "add_anyway", "keep_both", "refresh", "skip"]
Fate = Literal["merged", "same_text", "says_less"]
Verdict = Literal["supported", "partly", "unsupported"]
CheckedBy = Literal["model", "local", "rules"]
EventKind = Literal["route", "step", "standalone", "plan", "tree", "token", "reset", "waiting", "answer"]
Stage = Literal["waiting", "fetching", "reading", "chunking", "embedding", "storing", "done"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it rests in the store.

    `text` is the one text of the page: what `extract` prints, what is stored, and what every
    `start` and `end` indexes, in code points. It is empty in listings, which leave it out.
    `language` is a primary BCP 47 tag (`en`, `zh`) or empty. Times are ISO 8601 in UTC; `published` and
    `modified` are what the page says of itself, a date (`2024-03-05`) or a time, or empty.
    `aliases` are other addresses that lead to it. `etag` and `last_modified` are what its server sent
    with it, `checked_at` when it was last asked, `failures` how often it failed since it last answered.
    `version` counts its texts from 1. A page that is `gone` was found missing on its site. `reading` is the number of
    the rules by which it was read, 0 from before there were any.
    """

    url: str
    url_hash: str
    title: str
    language: str
    site: str
    text: str
    text_hash: str
    source: PageSource
    generation: str = ""
    chunks: int = 0
    characters: int = 0
    added_at: str = ""
    updated_at: str = ""
    author: str = ""
    published: str = ""
    modified: str = ""
    aliases: tuple[str, ...] = ()
    etag: str = ""
    last_modified: str = ""
    checked_at: str = ""
    failures: int = 0
    status: PageStatus = "active"
    version: int = 1
    reading: int = 0


@dataclass(frozen=True, slots=True)
class PageVersion:
    """A text that a page had: its `number` from 1, and from when until when (ISO 8601; "" is now)."""

    url_hash: str
    number: int
    title: str
    text: str
    text_hash: str
    since: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A verbatim slice `text == page.text[start:end]`.

    `section` is its heading path, outermost first; `context` is what else is embedded with it but not
    shown as its text, such as the header of the table that it continues. `parent` is the span of the
    page that is handed on in its place, where that is more than the chunk.
    """

    index: int
    text: str
    start: int
    end: int
    section: tuple[str, ...] = ()
    context: str = ""
    parent: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights; `indices` are token hashes, `values` their BM25 term weights (IDF is the engine's)."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as retrieval hands it on, with where it stands and why it was found.

    `ranks` and `scores` hold one entry a leg (`dense`, `sparse`, `fused`), ranks from 1. `lead` is the
    white space before it in the page, so that neighbours can be put together again. `parent` is the span
    of the page that is to be handed on in its place, under `parent_id`; one that was widened to it has none.
    `header` is that of the table which its first rows go on with; it stands further up in the page.
    `date` is when its page says it was last changed or published, or empty; `fetched_at` when the page was read from
    the web for one question (ISO 8601), empty for those of the library. `library` is where it is from, where several
    were searched.
    """

    id: str
    url: str
    url_hash: str
    title: str
    site: str
    language: str
    section: tuple[str, ...]
    text: str
    start: int
    end: int
    score: float = 0.0
    ranks: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    lead: str = ""
    parent: tuple[int, int] | None = None
    parent_id: str = ""
    date: str = ""
    fetched_at: str = ""
    library: str = ""
    header: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that a search considered, and what became of it.

    `place` is its rank in the context, None if it was left out: by MMR, or as `fate` says while the
    context was put together; then `into` is the id of the passage that holds its text. `repeats` is the
    id of the picked passage that it is most like, with their `similarity` (0 to 1).
    """

    passage: Passage
    place: int | None
    repeats: str | None = None
    similarity: float = 0.0
    fate: Fate | None = None
    into: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a search found: `passages` in context order, all `candidates`, milliseconds by stage.

    `legs` took part; `notes` is plain data on what the strategy did. `answerable` (0 to 1) is how
    likely the library holds the answer at all. `damaged` are the titles of pages of which a passage was found whose
    text is no longer what was stored.
    """

    question: str
    strategy: str
    passages: tuple[Passage, ...]
    candidates: tuple[Candidate, ...]
    legs: tuple[str, ...]
    ms: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    answerable: float = 1.0
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for a person, not yet put into words: `rag.locales.say(notice, language)` does that."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cause(self) -> str:
        """Return the code of the innermost reason, or nothing where no reason was given."""
        reason = self.params.get("reason")
        return Notice(reason["code"], reason["params"]).cause or str(reason["code"]) if reason else ""


def because(code: str, /, **params: Any) -> dict[str, Any]:
    """Return the parameters of a notice whose sentence has a `{reason}`: another notice, as plain data."""
    return {"reason": {"code": code, "params": params}}


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of one source. `reason` is a code of rag.locales, `message` its English sentence.

    `preview` is the beginning of the text that was extracted from a page that is `held` or a duplicate;
    `choices` are what the person can do about it: see `Decision`.
    """

    source: str
    url: str
    url_hash: str
    status: IngestStatus
    reason: str
    message: str
    chunks: int = 0
    seconds: float = 0.0
    params: Mapping[str, Any] = field(default_factory=dict)
    preview: str = ""
    choices: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote that supports a statement: `quote == page.text[start:end]`; `n` is its mark in the answer.

    `library` is where its page is, where several were searched.
    """

    n: int
    url: str
    url_hash: str
    title: str
    quote: str
    start: int
    end: int
    section: tuple[str, ...] = ()
    library: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """What `answer.text[start:end]` says, without its marks, and whether the passages bear it out.

    `marks` are the citations shown with it: none where it is unsupported. `by` says who judged: the connected
    chat model, a local model, or rules; `score` (0 to 1) orders statements by how well they are borne out.
    `reason` is what a verdict of rules rests on: verbatim, words, nothing_close, numbers, clause, negation,
    language; `model` for the others. One that is not `relevant` does not bear on the question.
    """

    start: int
    end: int
    verdict: Verdict
    marks: tuple[int, ...] = ()
    reason: str = ""
    by: CheckedBy = "rules"
    score: float = 0.0
    relevant: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One node's work in a run: how long it took and what it decided, as plain data."""

    node: str
    ms: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that went to and came from chat models; `estimated` if a server did not count (all of) them.

    `money` is in the currency of the prices in the settings, None where none are set. `prompts` are the versions of the
    standing rules that the models were given, such as `answer.en@1f2e3d4c`.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False
    money: float | None = None
    prompts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was called in a run, with what it was given and what it said; `failed` is why it said nothing."""

    name: str
    argument: str
    result: str = ""
    seconds: float = 0.0
    failed: Notice | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a run. `text` carries marks like `[1]` that point at `citations` by their `n`.

    `passages` are what the answer was written from, in context order; `searches` how they were found.
    `answerable` (0 to 1) is the best of the searches'. `statements` are those of `text` that were checked.
    `notice` says why an answer carries a caveat, is
    missing, or failed. An answer from the `conversation` alone has no citations. `standalone` is what a
    follow-up was understood as, empty for a question that stands by itself; `composed` how the answer
    was put together from the passages. `trail` is what a mode tells of its way beside that, as plain data. `tools` are
    those that were called for it.
    """

    question: str
    mode: str
    outcome: Outcome
    text: str
    citations: tuple[Citation, ...] = ()
    passages: tuple[Passage, ...] = ()
    steps: tuple[Step, ...] = ()
    model_calls: int = 0
    seconds: float = 0.0
    reasoner: str = ""
    notice: Notice | None = None
    searches: tuple[Retrieval, ...] = ()
    answerable: float = 1.0
    statements: tuple[Statement, ...] = ()
    standalone: str = ""
    composed: str = ""
    usage: Usage = Usage()
    trail: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[ToolUse, ...] = ()

    @property
    def quoted(self) -> bool:
        """Whether its sentences are the pages' own: they say nothing that would have to be checked."""
        return self.reasoner == "extractive" or self.composed == "quoted"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer. `standalone` is what the question was understood as, empty if as it stands.

    An `aside` asked nothing of pages: no search takes it in.
    """

    question: str
    answer: str
    standalone: str = ""
    aside: bool = False

    @property
    def meant(self) -> str:
        return self.standalone or self.question


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run; `seq` counts from 0.

    `data` is for `step` {"node", "state": "started"} or {"node", "state": "finished", "ms", "detail"},
    for `route` the way that a message goes, where it is no plain question, for `standalone` what a follow-up was
    understood as, for `plan` {"steps", "used", "most"}, for `token` a piece of text, for `reset` an empty text (discard
    the tokens so far), for `waiting` the Waits of a person, and for `answer`, always the last, the Answer. `path` names
    the nodes in whose nested graphs it happened, outermost first; none for the mode's own graph.
    """

    seq: int
    kind: EventKind
    data: Any
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """What a run waits for a person with: `asks` is what its node gave LangGraph's `interrupt`, JSON values."""

    id: str
    asks: Any
