"""The fast and deep graphs: search, grade the passages, rewrite the query and search again, answer.

Each step returns a state update, and its decision for the trace. The conversation is a summary of older messages, and
the recent ones with their standalone versions. The best available verifier checks the answer; rules do if it fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import Annotated, Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from rag.checking.citations import CheckedText, check_with
from rag.checking.statements import declines
from rag.errors import ModelError, RagError
from rag.graphs.common import (
    ConversationState,
    Result,
    Running,
    add_steps,
    blank_fields,
    check_question,
    collect,
    make_standalone,
    question_of,
    select_cited,
    shorten_conversation,
    stream_piece,
    summary_messages,
    unless_ended,
)
from rag.reasoning import RESET
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.composing import CompositionPlan, choose_plan, compose_answer, fitting_share
from rag.reasoning.extractive import ExtractiveReasoner, weighted_share
from rag.reasoning.questions import (
    RETRIEVE,
    Memory,
    exchanges_of,
    has_subject,
    human_message,
    is_about_conversation,
    is_third_language,
    make_call,
    questions_before,
    turns_of,
)
from rag.retrieval.context import (
    CAVEAT_THRESHOLD,
    IMPROBABLE,
    MIN_ANSWERED,
    REFUSAL_THRESHOLD,
    SURE_THRESHOLD,
    combine_odds,
)
from rag.retrieval.retriever import LEDGER_LEG
from rag.runs.run import NoticeRecord, Run, end_update, notice_of, record, step_note
from rag.text import join_surrogates, lazy_regex, strip_citations, terms
from rag.tracing import BUDGET_CODES, span
from rag.types import Citation, Notice, Passage, because

MAX_REWRITES = 3
MAX_TURN = 2_000  # characters of one message in a request
MAX_PASSAGES = 10
UNGRADED = "ungraded"

Change = Any  # values that langgraph accepts for `messages`: messages, and removals, which its type omits


class PassageRef(TypedDict):
    """A passage in the state: its ranks and scores in the search, without its text."""

    id: str
    score: float
    ranks: dict[str, int]
    scores: dict[str, float]


class LoopState(ConversationState, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets at entry.

    `passages` are the passages for the answer, in context order; `found` are the results of all searches of this
    question, `graded` the ids of graded passages, `relevant` is how many the last grading passed; `query` is the next
    search of a rewrite; `exhausted` is whether no query is left; `broken` is why the model failed, after which it is
    not called again. `standalone` is the complete question, if a model or the user provided one; else `before` are
    earlier questions whose words are also searched for. `summary` covers everything before the oldest message. `steps`
    have a `node`, its duration `ms` and its `detail`.
    """

    before: list[str]
    query: str
    passages: list[PassageRef]
    found: list[PassageRef]
    graded: list[str]
    relevant: int
    exhausted: bool
    broken: NoticeRecord | None
    loop_step: int
    tried: list[str]
    steps: list[dict[str, Any]]
    composed: str


def blank_state(question: str) -> LoopState:
    """Return the initial fields of a new question."""
    return {
        **blank_fields(question),
        "before": [],
        "query": "",
        "passages": [],
        "found": [],
        "graded": [],
        "relevant": 0,
        "exhausted": False,
        "broken": None,
        "loop_step": 0,
        "tried": [],
        "steps": [],
        "composed": "",
    }


def reference(passage: Passage) -> PassageRef:
    return {
        "id": passage.id,
        "score": passage.score,
        "ranks": dict(passage.ranks),
        "scores": dict(passage.scores),
    }


async def read_passages(
    refs: Sequence[PassageRef], passages_of: Callable[[Sequence[str]], Sequence[Passage]]
) -> list[Passage]:
    """Read the passages of `refs`, in their order and with their ranks; skip passages deleted since."""
    passages = await asyncio.to_thread(passages_of, [ref["id"] for ref in refs]) if refs else ()
    by_id = {passage.id: passage for passage in passages}
    return [
        replace(by_id[ref["id"]], score=ref["score"], ranks=ref["ranks"], scores=ref["scores"])
        for ref in refs
        if ref["id"] in by_id
    ]


def removals(messages: Sequence[AnyMessage]) -> list[Change]:
    """Return removals of messages that are not part of the conversation: tool calls and their results."""
    kept_ids = {message.id for turn in turns_of(messages) for message in turn.messages}
    return [RemoveMessage(id=message.id) for message in messages if message.id and message.id not in kept_ids]


def earlier_messages(state: LoopState, memory: Memory) -> list[AnyMessage]:
    """Return the conversation before the question: the summary, then messages, each shortened to MAX_TURN.

    Questions without an answer are omitted, since many services require alternating questions and answers.
    """
    turns = turns_of(state["messages"][:-1])
    recent = turns[memory.first_visible([turn.exchange for turn in turns]) :]
    messages = [message for turn in recent if turn.answer for message in turn.messages]
    shortened = ((HumanMessage if isinstance(m, HumanMessage) else AIMessage)(m.text[:MAX_TURN]) for m in messages)
    return [*summary_messages(state), *shortened]


_WriteResult = tuple[str, ModelError | None, Notice | None]
_TOO_LONG: Final = "answer_too_long"
"""The code of a reply that hit the model's length limit; its text is usable."""
_MIN_HISTORY_SHARE: Final = 0.5
"""Minimum share of the words added by an earlier question in a passage that is cited because of it."""


async def generate(state: LoopState, runtime: Running) -> Result:
    """Write the answer from the passages, or from the best of all searches if none passed grading."""
    is_unsure = runtime.context.mode.name == "deep" and not state["relevant"]
    refs = sorted(state["found"], key=lambda ref: -ref["score"])[:MAX_PASSAGES] if is_unsure else state["passages"]
    run, question = runtime.context, question_of(state)
    passages = _skip_quoted(await read_passages(refs, run.cache.passages_of), state, run)
    update: dict[str, Any] = {"passages": [reference(passage) for passage in passages]}
    runtime.stream_writer({"passages": update["passages"]})
    if not passages:
        nothing = await asyncio.to_thread(run.cache.nothing_found)
        return {**update, **_missing_state(state, nothing)}, step_note(nothing.code, passages=0)
    likely, broken = run.cache.answerable(), notice_of(state["broken"])
    if likely < REFUSAL_THRESHOLD and broken:
        return {**update, **end_update("failed", broken)}, step_note("failed", reason=broken.code)
    may_decline = run.reasoner.kind == "chat" and run.mode.name == "fast"  # it says if there is no answer
    quote_odds = await _score_quotes(state, passages, run)
    is_missing = likely < REFUSAL_THRESHOLD and not may_decline and (_is_ungraded(state) or not state["relevant"])
    if is_missing or combine_odds(quote_odds, likely) < IMPROBABLE:
        update["passages"] = list(map(reference, await _order_by_question(state, passages, run)))
        return {**update, **_missing_state(state, Notice("not_in_pages"))}, step_note("not_in_pages", answerable=likely)
    pieces: list[str] = []
    composed, error, doubt = await _write(state, passages, runtime, pieces)
    checked = await _verify("".join(pieces), passages, question, run, ask=error is None and not doubt)
    is_complete = error is None or error.code == _TOO_LONG
    if is_complete and not doubt and run.reasoner.kind == "chat":
        doubt = _doubt_notice(checked, passages, likely)
        if doubt and await _quote(state, passages, runtime, pieces):
            composed, checked = "quoted", await _verify("".join(pieces), passages, question, run, ask=False)
        else:
            doubt = None
    text, citations = checked.text, checked.citations
    update |= (
        end_update("caveat", doubt) if doubt and text else end_state(state, text, citations, error, is_unsure, likely)
    )
    if update["outcome"] == "answered" and (caveat := await _find_caveat(state, passages, citations, quote_odds, run)):
        update |= end_update("caveat", caveat)
    update |= checked.plain() | {"composed": composed}
    if text:
        update["messages"] = [AIMessage(text)]
    detail = step_note(
        str(update["outcome"]), passages=len(passages), citations=len(citations), answerable=likely, way=composed
    )
    before = await _find_used_history(state, passages, citations, run) if text else []
    return update, detail | ({"before": before} if before else {}) | ({"reason": error.code} if error else {})


async def _order_by_question(state: LoopState, passages: Sequence[Passage], run: Run) -> Sequence[Passage]:
    """Return the passages, after a search for earlier questions too those with most of this question's words first."""
    if run.quoter is None or not state["before"]:
        return passages
    shares = await asyncio.to_thread(run.quoter.compute_shares, question_of(state), passages)
    return [passages[place] for place in sorted(range(len(passages)), key=lambda place: -shares[place])]


def _skip_quoted(passages: list[Passage], state: LoopState, run: Run) -> list[Passage]:
    """Return the passages that no earlier answer to the same question quotes, or all if none is left.

    A chat model always gets all of them.
    """
    again = state["standalone"] if run.reasoner.kind != "chat" else ""
    answers = [one.answer for one in exchanges_of(state["messages"]) if again and one.effective_question == again]
    quotes = ["".join(terms(quote)) for answer in answers for quote in strip_citations(answer).split("\n\n")]
    texts = {passage.id: "".join(terms(passage.text)) for passage in passages} if quotes else {}
    return [one for one in passages if not any(quote and quote in texts[one.id] for quote in quotes)] or passages


async def _score_quotes(state: LoopState, passages: Sequence[Passage], run: Run) -> float:
    """Return the probability that the quoted sentences answer, if the answer is quotes; else 1."""
    if run.quoter is None or run.reasoner.kind == "chat":
        return 1.0
    return await asyncio.to_thread(run.quoter.answer_probability, question_of(state), passages)


async def _find_caveat(
    state: LoopState, passages: Sequence[Passage], citations: Sequence[Citation], quote_odds: float, run: Run
) -> Notice | None:
    """Return a caveat if no passage could be graded, the quotes may not answer, or they lack names of the question."""
    if _is_ungraded(state):
        return Notice(UNGRADED)
    if quote_odds < MIN_ANSWERED:
        return Notice("closest")
    if run.quoter is None or run.reasoner.kind == "chat":
        return None
    quoted = select_cited(passages, citations)
    names = await asyncio.to_thread(run.quoter.find_missing_names, question_of(state), quoted)
    return Notice("not_named", {"names": " · ".join(names)}) if names else None


async def _find_used_history(
    state: LoopState, passages: Sequence[Passage], citations: Sequence[Citation], run: Run
) -> list[str]:
    """Return the earlier questions most of whose words that they add to the search, by IDF, are in a cited passage.

    Without any, the answer doesn't depend on the conversation, and the question isn't shown as a follow-up.
    """
    quoter = run.quoter or run.reasoner
    if not isinstance(quoter, ExtractiveReasoner) or not state["before"]:
        return state["before"]
    encoder, asked = quoter.encoder, quoter.encoder.terms(question_of(state))
    texts = (one.text_with_headings for one in select_cited(passages, citations))
    cited = [encoder.terms(text) for text in texts]
    added = [encoder.terms(earlier) - asked for earlier in state["before"]]
    weights = await asyncio.to_thread(quoter.weights, sorted(frozenset[int]().union(*added)))
    shares = (
        max((weighted_share({one: weights[one] for one in new}, text) for text in cited), default=0.0) for new in added
    )
    return [earlier for earlier, share in zip(state["before"], shares, strict=True) if share > _MIN_HISTORY_SHARE]


def _is_ungraded(state: LoopState) -> bool:
    gradings = [step["detail"].get("decision") for step in state["steps"] if step["node"] == "grade"]
    return gradings[-1:] == [UNGRADED]


async def _verify(text: str, passages: Sequence[Passage], question: str, run: Run, *, ask: bool = True) -> CheckedText:
    """Check the statements of `text`: by rules without `ask`, or if no verifier works.

    The chat model does not check a fast answer, which takes only one call.
    """
    verifiers = [one for one in run.verifiers if ask and not (run.mode.name == "fast" and one.verifier_kind == "model")]
    return (await check_with(text, passages, verifiers, question, run.options.context_tokens)).result()


async def _write(state: LoopState, passages: Sequence[Passage], runtime: Running, pieces: list[str]) -> _WriteResult:
    """Stream the answer and collect it in `pieces`, so that the text so far survives a failure.

    Returns how it was composed, the error that interrupted it, and the caveat of an answer that was quoted instead.
    """
    run = runtime.context
    question = question_of(state)
    calls = run.budget.remaining - bool(run.verifiers)  # one for the check
    tokens = run.options.context_tokens
    if isinstance(run.reasoner, ChatReasoner):
        with suppress(ModelError):  # the call for the answer will report the error
            tokens = await run.reasoner.fitting_tokens(tokens)
    plan = choose_plan(passages, run.options.compose, tokens, calls, deep=run.mode.name == "deep")
    context_passages = await _distill(question, passages, plan, run)
    try:
        if broken := notice_of(state["broken"]):
            raise ModelError(broken.code, **broken.params)
        if isinstance(run.reasoner, ChatReasoner):
            source = compose_answer(run.reasoner, question, context_passages, plan)
        else:
            source = run.reasoner.answer(question, context_passages)
        await collect(source, runtime, pieces)
    except ModelError as error:
        fallback = await _quote_instead(state, passages, runtime, pieces, error)
        return fallback or (plan.way, error, None)
    return plan.way, None, None


async def _quote_instead(
    state: LoopState, passages: Sequence[Passage], runtime: Running, pieces: list[str], error: ModelError
) -> _WriteResult | None:
    """Quote the passages' best sentences instead of an answer that a model failed to write or complete.

    Returns None if there are none, or if the model's text so far is better: it hit a length or budget limit.
    """
    is_over_budget = error.code in BUDGET_CODES
    if pieces and (is_over_budget or error.code == _TOO_LONG):
        return None
    if not await _quote(state, passages, runtime, pieces):
        return None
    if is_over_budget:
        return "quoted", None, Notice(f"quoted_{error.code}", error.notice.params)
    return "quoted", error, Notice("quoted_model_failed", because(error.code, **error.notice.params))


async def _quote(state: LoopState, passages: Sequence[Passage], runtime: Running, pieces: list[str]) -> bool:
    """Replace `pieces` with the best sentences of the passages; return False if there are none."""
    quoter = runtime.context.quoter
    if quoter is None:
        return False
    quotes = [piece async for piece in quoter.answer(question_of(state), passages)]
    for piece in [*([RESET] if pieces and quotes else []), *quotes]:
        stream_piece(piece, runtime, pieces)
    return bool(quotes)


def _doubt_notice(checked: CheckedText, passages: Sequence[Passage], likely: float) -> Notice | None:
    """Return a notice if quotes are better than the model's text: it is unsupported, only names pages or headings, or
    says that nothing was found although the search is sure of an answer."""
    names = " ".join(name for one in passages for name in (one.title, *one.section))
    if checked.citations and not set(terms(strip_citations(checked.text))) <= set(terms(names)):
        return None
    if not checked.text.strip() or declines(checked.text):
        return Notice("quoted_not_found") if likely >= SURE_THRESHOLD else None
    return Notice("quoted_unsupported") if likely >= CAVEAT_THRESHOLD else None


async def _distill(question: str, passages: Sequence[Passage], plan: CompositionPlan, run: Run) -> Sequence[Passage]:
    """Return the passages, reduced to their relevant sentences if that was requested or they do not fit."""
    choice, fits = run.options.distill, fitting_share(passages, plan.passage_tokens)
    if run.quoter is None or run.reasoner.kind != "chat" or choice is False:
        return passages
    if choice is None and (plan.way != "stuff" or fits >= 1.0):
        return passages
    share = min(fits, 0.5 if choice else 1.0)
    return await asyncio.to_thread(run.quoter.distil, question, passages, share)


def end_state(
    state: LoopState,
    text: str,
    citations: Sequence[Citation],
    error: ModelError | None,
    is_unsure: bool,
    likely: float,
) -> dict[str, Any]:
    """Return the outcome, with a notice that explains it where necessary."""
    if error and not (error.code == _TOO_LONG and text):
        return end_update("failed", error.notice)
    if not text.strip() or (not citations and (likely < CAVEAT_THRESHOLD or declines(text))):
        return _missing_state(state, Notice("not_in_pages"))
    if error:
        return end_update("caveat", error.notice)
    if not citations:
        return end_update("caveat", Notice("no_citations"))
    if is_unsure:
        is_limited = any(step["detail"].get("decision") in BUDGET_CODES for step in state["steps"])
        code = "budget_best" if is_limited else "best_found"
        return end_update("caveat", Notice(code, {"searches": len(state["tried"])}))
    if likely < CAVEAT_THRESHOLD:
        return end_update("caveat", Notice("in_doubt"))
    return end_update("answered", Notice("question_language") if is_third_language(state["question"]) else None)


def _missing_state(state: LoopState, notice: Notice) -> dict[str, Any]:
    is_third = is_third_language(state["question"])
    return end_update("not_in_pages", Notice("not_in_pages_language") if is_third else notice)


_SLOW = "model_slow"
_UNUSABLE = "chat_unusable"
MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 400

_RECURSION_LIMIT = 24  # a deep run that rewrites three times takes 17 steps
_DESCRIPTION = (
    "Search the user's saved web pages and return the best-matching passages. "
    "query: a self-contained search query with the key terms, names and numbers."
)
_QUERY = lazy_regex(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")')
_LOOKS_LIKE_A_CALL = lazy_regex(rf'<tool_call>|"name"\s*:\s*"{RETRIEVE}"|\b{RETRIEVE}\s*\(')


async def enter(state: LoopState, runtime: Running) -> Result:
    """Start a question; only the conversation survives from the earlier state."""
    question = state["question"].strip()
    update: dict[str, Any] = {**blank_state(question)}
    if end := check_question(update):
        return end
    correction = " ".join(runtime.context.options.standalone.split())
    update["messages"] = [*removals(state.get("messages", [])), human_message(question, correction)]
    if correction:
        runtime.stream_writer({"standalone": correction})
        return {**update, "standalone": correction}, step_note("corrected", question=correction)
    return update, step_note("begin")


async def condense(state: LoopState, runtime: Running) -> Result:
    """Summarise a long conversation, and have a model complete the question.

    Without a model, old answers are shortened, and earlier questions are searched for along with this one.
    """
    run, question, earlier = runtime.context, state["question"], state["messages"][:-1]
    memory, spare = run.options.memory_scope, run.budget.final_calls
    summary, changes = await shorten_conversation(earlier, state.get("summary", ""), run, spare)
    update: dict[str, Any] = {"summary": summary, "messages": changes}
    if is_about_conversation(question) or state["standalone"]:
        return update, step_note("stands_alone")
    history = exchanges_of(earlier[len(changes) :] if run.chat else earlier)
    standalone = await make_standalone(question, history, summary, run, spare)
    if not standalone:
        exchanges = history or exchanges_of(earlier)  # their words make a better query than a summary
        before = questions_before(exchanges[memory.first_visible(exchanges) :])
        if has_subject(question) or not before:
            return {**update, "before": before}, step_note("followed", history=before)
        update["before"], standalone = before[:-1], before[-1]
    update["messages"] = [*update["messages"], human_message(question, standalone, state["messages"][-1].id)]
    runtime.stream_writer({"standalone": standalone})
    decision = "stands_alone" if standalone == question else "condensed"
    return {**update, "standalone": standalone}, step_note(decision, question=standalone)


async def agent(state: LoopState, runtime: Running) -> Result:
    """Call the search, or answer from the conversation. A model decides only if the question is about the conversation,
    or in a language from which the query should be translated."""
    if query := state["query"]:
        return {"messages": [make_call([query])], "query": ""}, step_note("search_rewritten", queries=[query])
    if query := state["standalone"]:
        return {"messages": [make_call([query])]}, step_note("search_condensed", queries=[query])
    question = state["question"]
    if not (is_about_conversation(question) or is_third_language(question)):
        return {"messages": [make_call([question])]}, step_note("search", queries=[question])
    try:
        choice, decision = await _choose(state, runtime.context)
    except ModelError as error:
        failure = {"broken": record(error.notice), "messages": [make_call([question])]}
        return failure, step_note("failed", reason=error.code, queries=[question])
    if choice.queries:
        return {"messages": [make_call(choice.queries)]}, step_note(decision, queries=list(choice.queries))
    runtime.stream_writer({"token": choice.text})
    reply = {"messages": [AIMessage(choice.text)], "text": choice.text, "outcome": "conversation"}
    return reply, step_note(decision)


async def _choose(state: LoopState, run: Run) -> tuple[_AgentDecision, str]:
    """Ask the model, retry once if its call is invalid, and fall back to a search for the question itself."""
    question, history = state["question"], earlier_messages(state, run.options.memory_scope)
    fallback = _AgentDecision((question,))
    tools = [retrieve_tool()]
    try:
        with run.budget.reserve_final_calls():
            choice = read_decision(await run.reasoner.decide(question, history, tools))
            if choice.problem and run.budget.remaining:
                complaint = f"(My call could not be used: {choice.problem}."
                complaint += " I call retrieve again, with one string named query.)"
                history += [HumanMessage(question), AIMessage(complaint)]
                choice = read_decision(await run.reasoner.decide(question, history, tools))
    except ModelError as error:
        if error.code not in BUDGET_CODES:
            raise
        return fallback, "search_call_limit"
    if choice.queries:
        return choice, "search"
    if choice.problem:
        return fallback, "search_malformed_call"
    if choice.text and is_about_conversation(question):
        return choice, "answered_without_searching"
    return fallback, "search_not_small_talk"


async def retrieve(state: LoopState, runtime: Running) -> Result:
    """Run the calls of the last message; the state stores each passage's ranks, not its text."""
    calls = [call for m in state["messages"][-1:] if isinstance(m, AIMessage) for call in m.tool_calls]
    queries = [str(call["args"]["query"]) for call in calls]
    try:
        with runtime.context.budget.reserve_final_calls():  # some strategies have a model write their queries
            output = await _tool_node().ainvoke({"messages": state["messages"][-1:], "before": state["before"]})
    except RagError as error:
        return end_update("failed", error.notice), step_note("failed", reason=error.code, queries=queries)
    replies: list[ToolMessage] = output["messages"]
    unique: dict[str, Passage] = {}
    for rank in zip_longest(*(reply.artifact or [] for reply in replies)):  # all first results, then all second ones
        for passage in filter(None, rank):
            unique.setdefault(passage.id, passage)
    passages = list(unique.values())[:MAX_PASSAGES]
    existing = {ref["id"] for ref in state["found"]}
    refs = [reference(passage) for passage in passages]
    new = [ref for ref in refs if ref["id"] not in existing]
    update: dict[str, Any] = {
        "messages": [reply.model_copy(update={"artifact": None}) for reply in replies],
        "passages": refs,
        "found": [*state["found"], *new],
        "tried": [*state["tried"], *(query for query in queries if query not in state["tried"])],
    }
    decision = "found_in_ledger" if passages and all(LEDGER_LEG in passage.ranks for passage in passages) else "found"
    return update, step_note(decision, queries=queries, passages=len(refs), new=len(new))


async def grade(state: LoopState, runtime: Running) -> Result:
    """Select the relevant passages among those that were not graded before.

    If the model's verdicts are late or unreadable, all are selected, as in a fast run.
    """
    run = runtime.context
    if run.cache.is_sure() and run.reasoner.kind == "chat" and not state["graded"]:
        return {"relevant": len(state["passages"])}, step_note("sure", of=len(state["passages"]))
    refs = [ref for ref in state["passages"] if ref["id"] not in state["graded"]]
    passages = await read_passages(refs, run.cache.passages_of)
    try:
        with run.budget.reserve_final_calls():
            verdicts = await run.reasoner.grade(question_of(state), passages) if passages else []
        decision = "graded"
    except ModelError as error:
        if error.code in BUDGET_CODES:
            verdicts, decision = [False] * len(passages), error.code
        elif error.code in (_UNUSABLE, "chat_timeout", _SLOW):
            verdicts, decision = [True] * len(passages), UNGRADED
        else:
            return {"broken": record(error.notice)}, step_note("failed", reason=error.code)
    relevant_ids = {p.id for p, relevant in zip(passages, verdicts, strict=False) if relevant}
    grades = [{"id": p.id, "relevant": p.id in relevant_ids} for p in passages]
    update: dict[str, Any] = {"relevant": len(relevant_ids), "graded": [*state["graded"], *(p.id for p in passages)]}
    if relevant_ids:
        update["passages"] = [ref for ref in state["passages"] if ref["id"] in relevant_ids]
    if decision == UNGRADED:
        return update, step_note(UNGRADED, of=len(passages))
    return update, step_note(decision, relevant=len(relevant_ids), of=len(passages), grades=grades)


async def rewrite(state: LoopState, runtime: Running) -> Result:
    """Rewrite the query, given the earlier ones; the search ends if the reply is empty or repeats one."""
    run, attempt = runtime.context, state["loop_step"] + 1
    passages = await read_passages(state["passages"], run.cache.passages_of)
    update: dict[str, Any] = {"loop_step": attempt}
    try:
        with run.budget.reserve_final_calls():
            query = await run.reasoner.rewrite(question_of(state), state["tried"], passages)
    except ModelError as error:
        if error.code not in BUDGET_CODES and error.code != _UNUSABLE:
            detail = step_note("failed", reason=error.code, attempt=attempt)
            return {**update, "broken": record(error.notice)}, detail
        query = ""
    query = " ".join(query.split())[:MAX_QUERY_CHARACTERS]
    if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
        return {**update, "exhausted": True}, step_note("nothing_left_to_try", attempt=attempt)
    return {**update, "query": query}, step_note("rewritten", query=query, attempt=attempt)


async def _retrieve(query: str, before: Annotated[list[str], InjectedState("before")]) -> tuple[str, list[Passage]]:
    run = get_runtime(Run).context
    with span(RETRIEVE, "tool", query=query) as search_span:
        passages = list(await asyncio.to_thread(run.cache.search, query, before))
        search_span.attributes["passages"] = len(passages)
    lines = [f"[{place}] {passage.title or passage.url}" for place, passage in enumerate(passages, 1)]
    return "\n".join(lines) or "Nothing was found.", passages


@cache
def retrieve_tool() -> BaseTool:
    """Make the search tool: its content is a list of titles for the conversation, its artifact the passages."""
    return StructuredTool.from_function(
        coroutine=_retrieve, name=RETRIEVE, description=_DESCRIPTION, response_format="content_and_artifact"
    )


@cache
def _tool_node() -> ToolNode:
    """Make the node that runs the tool's calls; search errors propagate."""
    return ToolNode([retrieve_tool()])


@dataclass(frozen=True, slots=True)
class _AgentDecision:
    """A model's decision: to search for `queries`, or to reply with `text`; `problem` if its call was invalid."""

    queries: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""


def read_decision(message: AIMessage) -> _AgentDecision:
    """Parse the model's decision. A call with a readable query is valid, whatever else is wrong."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    text = message.text.strip()
    if not calls and not _LOOKS_LIKE_A_CALL.search(text):
        return _AgentDecision(text=text)
    queries = [query for call in calls if (query := _read_query(call.get("args")))]
    if not calls and (query := _find_query(text)):
        queries = [query]
    if queries:
        return _AgentDecision(tuple(dict.fromkeys(queries))[:MAX_QUERIES])
    name = calls[0].get("name") if calls else RETRIEVE
    if name != RETRIEVE:
        return _AgentDecision(problem="there is no tool of that name")
    return _AgentDecision(problem="its arguments were not a JSON object with a string named query")


def _read_query(arguments: object) -> str:
    if isinstance(arguments, dict):
        query = arguments.get("query")
        return _clean(query) if isinstance(query, str) else ""
    return _find_query(arguments) if isinstance(arguments, str) else ""


def _find_query(raw: str) -> str:
    """Return the query of a call that is not valid JSON as a whole, if its string is complete."""
    match = _QUERY.search(raw)
    if not match:
        return ""
    try:
        return _clean(str(json.loads(match[1], strict=False)))
    except json.JSONDecodeError:
        return ""


def _clean(query: str) -> str:
    return join_surrogates(query).strip()[:MAX_QUERY_CHARACTERS]


def after_enter(state: LoopState, runtime: Running) -> Literal["condense", "agent", "__end__"]:
    """Skip `condense` for a first question or, in a short conversation, for a complete one or one about it."""
    if state["outcome"]:
        return "__end__"
    if len(state["messages"]) < 2:
        return "agent"
    follows = not (state["standalone"] or is_about_conversation(state["question"]))
    surplus = runtime.context.options.memory_scope.count_summarised(exchanges_of(state["messages"][:-1]))
    return "condense" if follows or surplus else "agent"


def after_agent(state: LoopState) -> Literal["retrieve", "__end__"]:
    """Search even if the model failed to decide; the passages are then quoted."""
    return "__end__" if state["outcome"] == "conversation" else "retrieve"


def after_deep_search(state: LoopState) -> Literal["grade", "generate", "__end__"]:
    """Skip grading if the model failed."""
    if state["outcome"]:
        return "__end__"
    return "generate" if state["broken"] else "grade"


def after_grade(state: LoopState, runtime: Running) -> Literal["generate", "rewrite"]:
    """Rewrite only while rewrites remain, and calls for one and the answer after it."""
    is_exhausted = state["loop_step"] >= MAX_REWRITES or runtime.context.budget.remaining < 2
    return "generate" if state["relevant"] or state["broken"] or is_exhausted else "rewrite"


def after_rewrite(state: LoopState) -> Literal["agent", "generate"]:
    return "generate" if state["exhausted"] or state["broken"] else "agent"


@cache
def graph_of(mode: str, saver: Any) -> CompiledStateGraph[LoopState, Run, LoopState, LoopState]:
    """Build the graph of a mode, on first use; all runs share it, and `saver` stores its conversations.

    Fast: enter → agent → retrieve → generate, with one model call, or two for a follow-up, and one search. Deep also
    grades the passages, and makes up to three more searches with rewritten queries.
    """
    builder = StateGraph(LoopState, context_schema=Run)
    add_steps(builder, enter, condense, agent, retrieve, generate, stores=True)
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", after_enter, ["condense", "agent", END])
    builder.add_edge("condense", "agent")
    builder.add_conditional_edges("agent", after_agent, ["retrieve", END])
    builder.add_edge("generate", END)
    if mode == "deep":
        add_steps(builder, grade, rewrite, stores=True)
        builder.add_conditional_edges("retrieve", after_deep_search, ["grade", "generate", END])
        builder.add_conditional_edges("grade", after_grade, ["generate", "rewrite"])
        builder.add_conditional_edges("rewrite", after_rewrite, ["agent", "generate"])
    else:
        builder.add_conditional_edges("retrieve", unless_ended("generate"), ["generate", END])
    return builder.compile(checkpointer=saver).with_config(recursion_limit=_RECURSION_LIMIT)


async def remember(run: Run) -> None:
    """Add the text of an interrupted run to its conversation, which has only the question."""
    if not run.thread or run.saver is None or not run.text.strip():
        return
    graph, config = graph_of(run.mode.name, run.checkpointer()), run.config()
    snapshot = await graph.aget_state(config)
    if snapshot.values.get("question") == run.question.text.strip():
        await graph.aupdate_state(config, {"messages": [AIMessage(run.text)]}, as_node="generate")
