"""Frozen value types that packages exchange, without behaviour that could fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RunMode = Literal["fast", "deep", "research", "judge", "summary", "tool"]
Outcome = Literal["answered", "caveat", "not_in_pages", "failed", "conversation"]
IngestStatus = Literal["added", "unchanged", "updated", "duplicate", "held", "gone", "skipped", "failed"]
SAVED: frozenset[IngestStatus] = frozenset({"added", "updated", "unchanged", "duplicate"})
"""Statuses after which the library contains the source's text."""
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
    """A stored page.

    `text` is what `extract` prints, the database stores, and every `start` and `end` indexes, in code points; it is
    empty in listings. `language` is a primary BCP 47 tag (`en`, `zh`) or empty. Times are ISO 8601 in UTC; `published`
    and `modified` come from the page itself, as a date (`2024-03-05`), a time, or empty. `aliases` are other URLs that
    lead to the page. `etag` and `last_modified` come from its server, `checked_at` is the time of the last request,
    `failures` the number of failed requests since the last successful one. `version` counts its texts from 1. A `gone`
    page was missing from its site. `reading` is the READING_VERSION that produced the text, 0 if older.
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
    """A version of a page's text, `number` from 1, valid from `since` to `until` (ISO 8601; "" for the current one)."""

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

    `section` is its heading path, outermost first; `context` is embedded with it but not displayed, such as the header
    of a table that it continues. `parent` is the larger span of the page that replaces it in the context, if any.
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
    """Term weights: `indices` are token hashes, `values` their BM25 term weights (the engine adds the IDF)."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as retrieval returns it, with its position and the reasons why it matched.

    `ranks` and `scores` have one entry per leg (`dense`, `sparse`, `fused`), with ranks from 1. `lead` is the white
    space before it in the page, for joining neighbours. `parent` is the span of the page that replaces it in the
    context, with the id `parent_id`; an expanded passage has none. `header` is the header of the table that its first
    rows continue. `date` is when the page says it was modified or published, or empty; `fetched_at` is when it was
    fetched from the web for one question (ISO 8601), else empty. `library` is set if several were searched.
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

    @property
    def text_with_headings(self) -> str:
        """The text, below the page's title and the headings above it."""
        return "\n".join((self.title, *self.section, self.text))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that a search considered, and the outcome.

    `place` is its rank in the context, None if it was excluded: by MMR, or by context assembly for the reason in
    `fate`; then `into` is the id of the passage that includes its text. `repeats` is the id of the most similar
    selected passage, `similarity` (0 to 1) their similarity.
    """

    passage: Passage
    place: int | None
    repeats: str | None = None
    similarity: float = 0.0
    fate: Fate | None = None
    into: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of a search: `passages` in context order, all `candidates`, milliseconds by stage.

    `legs` are those that took part; `notes` is plain data about the strategy's decisions. `answerable` is the
    probability that the library has the answer. `damaged` lists the titles of pages with a matching passage whose text
    is corrupted.
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
    """A message for the user, not yet localised: `rag.locales.say(notice, language)` does that."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cause(self) -> str:
        """The code of the innermost reason; empty if there is none."""
        reason = self.params.get("reason")
        return Notice(reason["code"], reason["params"]).cause or str(reason["code"]) if reason else ""


def because(code: str, /, **params: Any) -> dict[str, Any]:
    """Return the parameters of a notice with a `{reason}` placeholder: another notice, as plain data."""
    return {"reason": {"code": code, "params": params}}


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The outcome for one source.

    `preview` is the beginning of the text of a page that is `held` or a duplicate; `choices` are the user's options.
    """

    source: str
    url: str
    url_hash: str
    status: IngestStatus
    notice: Notice
    chunks: int = 0
    seconds: float = 0.0
    preview: str = ""
    choices: tuple[Decision, ...] = ()

    @property
    def page_hash(self) -> str:
        """The url_hash of the page with the source's text: for a duplicate, that of the page it repeats."""
        repeated = self.notice.params.get("url_hash") if self.status == "duplicate" else ""
        return str(repeated or self.url_hash)


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote that supports a statement: `quote == page.text[start:end]`; `n` is its number in the answer.

    `library` is the library of its page, if several were searched.
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
    """The statement in `answer.text[start:end]`, without its marks, and whether the passages support it.

    `marks` are the numbers of its citations, none if it is unsupported. `by` is the judge: the connected chat model, a
    local model, or rules; `score` (0 to 1) is the degree of support. `reason` is the basis of a verdict by rules:
    verbatim, words, nothing_close, numbers, clause, negation, language; `model` for the others. A statement that is not
    `relevant` is off-topic.
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
    """One node's work in a run: its duration and its decisions, as plain data."""

    node: str
    ms: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens sent to and received from chat models; `estimated` if a server did not report all of them.

    `money` is the cost in the currency of the configured prices, None without prices. `prompts` are the versions of the
    prompts used, such as `answer.en@1f2e3d4c`.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False
    money: float | None = None
    prompts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call in a run, with its argument and result; `failed` is the reason for a missing result."""

    name: str
    argument: str
    result: str = ""
    seconds: float = 0.0
    failed: Notice | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a run. `text` has marks like `[1]` that point to `citations` by their `n`.

    `passages` are the context that the answer was written from, in order; `searches` found them. `answerable` is the
    highest probability of all searches. `statements` are the checked statements of `text`. `notice` explains a caveat,
    a missing answer or a failure. An answer from the `conversation` alone has no citations. `standalone` is the
    follow-up rewritten as a standalone question, empty if it already is one; `composed` is how the answer was composed
    from the passages. `trail` is further plain data that a mode records. `tools` are the tool calls.
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
        """True if all sentences are quotes from the pages, so that none needs a check."""
        return self.reasoner == "extractive" or self.composed == "quoted"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer. `standalone` is the question rewritten as a standalone one, empty if unchanged.

    An `aside` is not about pages, so searches ignore it. `pages` are the url_hashes of cited or added pages.
    """

    question: str
    answer: str
    standalone: str = ""
    aside: bool = False
    pages: tuple[str, ...] = ()

    @property
    def effective_question(self) -> str:
        return self.standalone or self.question


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run; `seq` counts from 0.

    `data` is for `step` {"node", "state": "started"} or {"node", "state": "finished", "ms", "detail"}, for `route` the
    route of a message that is not a plain question, for `standalone` the rewritten follow-up, for `plan` {"steps",
    "used", "most"}, for `tree` {"rows", "used", "most"}, for `token` a piece of text, for `reset` "" (discard all
    tokens so far), for `waiting` the Waits for the user, and for `answer`, always the last, the Answer. `path` names
    the nodes whose nested graphs it happened in, outermost first; empty for the mode's main graph.
    """

    seq: int
    kind: EventKind
    data: Any
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """A question of a run to the user: `asks` is the value passed to LangGraph's `interrupt` (JSON values)."""

    id: str
    asks: Any
