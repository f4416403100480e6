"""The research graph: its edges, the context of a run, and the result of an interrupted one."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from rag.graphs.common import CALLS_RESERVED, check_text_so_far, question_of, require_quoter, trace_step
from rag.graphs.common import prepare as prepare_graph
from rag.graphs.research import nodes, writing
from rag.graphs.research.state import ResearchContext, ResearchState, StepInput, may_leave
from rag.graphs.research.writing import gaps, quote_findings
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.research import ChatResearcher, RuleResearcher
from rag.runs.run import PreparedGraph, Run

_HEADINGS = 20  # that a search can be limited to
_TRAIL_KEYS = ("aspects", "plan", "decisions", "gain", "stop", "struck", "notes")
_RECURSION_LIMIT = 40  # seven rounds take three steps each


@cache
def graph_of(saver: Any = None) -> Any:
    """Build enter → plan → (approve) → dispatch → (consent → dispatch) → parallel steps → review → dispatch …, then
    write → verify; `saver` stores its checkpoints."""
    builder = StateGraph(ResearchState, context_schema=ResearchContext)
    for name in ("enter", "plan", "approve", "dispatch", "consent", "step", "review"):
        builder.add_node(name, trace_step(name, getattr(nodes, name)))
    for name in ("write", "verify"):
        builder.add_node(name, trace_step(name, getattr(writing, name)))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["plan", END])
    builder.add_conditional_edges("plan", _after_plan, ["approve", "dispatch"])
    builder.add_conditional_edges("approve", _after_approve, ["plan", "dispatch"])
    builder.add_conditional_edges("dispatch", _after_dispatch, ["consent", "step", "write"])
    builder.add_edge("consent", "dispatch")
    builder.add_edge("step", "review")
    builder.add_conditional_edges("review", _after_review, ["dispatch", "write"])
    builder.add_conditional_edges("write", _after_write, ["verify", END])
    builder.add_edge("verify", END)
    return builder.compile(checkpointer=saver).with_config(recursion_limit=_RECURSION_LIMIT)


def _after_enter(state: ResearchState) -> Literal["plan", "__end__"]:
    return "__end__" if state["outcome"] else "plan"


def _after_plan(state: ResearchState, runtime: Runtime[ResearchContext]) -> Literal["approve", "dispatch"]:
    """Wait if the person wants to see the plan, or the question is ambiguous."""
    context = runtime.context
    waits = context.options.approve or (state["unclear"] and context.may_wait)
    return "approve" if waits else "dispatch"


def _after_approve(state: ResearchState) -> Literal["plan", "dispatch"]:
    return "plan" if state["unclear"] and state["clarified"] else "dispatch"


def _after_dispatch(
    state: ResearchState, runtime: Runtime[ResearchContext]
) -> list[Send] | Literal["consent", "write"]:
    """Send each step its share of the remaining calls, so that none uses up those of others or of the report."""
    if state["web"] == "asking" and not state["stop"]:
        return "consent"
    running = [step for step in state["plan"] if step["status"] == "running"]
    if not running or state["stop"]:
        return "write"
    context = runtime.context
    spare = max(0, context.budget.remaining - CALLS_RESERVED - 1)
    paths = (entry["passage"]["section"] for entry in state["ledger"].values())
    headings = list(dict.fromkeys(path[-1] for path in paths if path))[:_HEADINGS]
    return [
        Send(
            "step",
            StepInput(
                question=question_of(state),
                step=step,
                aspects=state["aspects"],
                past=[past_step["summary"] for past_step in state["past"] if past_step["summary"]],
                calls=min(2 * nodes.CALLS_PER_STEP, spare // len(running)),
                web=may_leave(state, context),
                headings=headings,
            ),
        )
        for step in running
    ]


def _after_review(state: ResearchState) -> Literal["dispatch", "write"]:
    return "write" if state["stop"] else "dispatch"


def _after_write(state: ResearchState) -> Literal["verify", "__end__"]:
    return "__end__" if state["outcome"] else "verify"


async def prepare(run: Run) -> PreparedGraph:
    return await prepare_graph(run, graph_of, _context)


def _context(run: Run) -> ResearchContext:
    cache, reasoner = run.cache, run.reasoner
    cannot_ask = run.question.options.web == "ask" and not run.thread  # an unsaved run cannot wait for a person
    return ResearchContext(
        search=cache.search,
        rules=RuleResearcher(require_quoter(run)),
        budget=run.budget,
        seconds=run.seconds,
        changes=run.changes,
        model=ChatResearcher(reasoner) if isinstance(reasoner, ChatReasoner) else None,
        web=None if cannot_ask else cache.retriever.web,
        titles=cache.retriever.titles,
        answerable=cache.answerable,
        holds=lambda question: cache.retriever.find_cached(question) is not None,
        may_wait=bool(run.thread),
        condenser=run.condenser,
        verifiers=run.verifiers,
        options=run.question.options,
    )


async def rescue(run: Run) -> dict[str, Any]:
    """Return the last state of an interrupted run, with its text so far, or a report of quotes from its findings."""
    state: Any = run.state
    if result := await check_text_so_far(run):
        return {**state, **result}
    return {**state, **await quote_findings(state, _context(run))} if state.get("ledger") else run.state


def trail(run: Run) -> dict[str, Any]:
    """Return the data stored with the answer: the final plan, and the ledger without the passages' texts.

    Passages from the web, which are stored nowhere else, keep their text.
    """
    state: Any = run.state
    ledger = [
        {
            **{key: entry["passage"][key] for key in ("id", "url", "url_hash", "title", "start", "end")},
            "distilled": entry["distilled"],
            "steps": sorted(entry["ranks"], key=lambda step: entry["ranks"][step]),
            "source": entry["source"],
            "fetched_at": entry["fetched_at"],
            **({"passage": entry["passage"]} if entry["source"] == "web" else {}),
        }
        for entry in state.get("ledger", {}).values()
    ]
    fields = {key: state[key] for key in _TRAIL_KEYS if state.get(key)}
    return {**fields, "ledger": ledger, "gaps": gaps(state)}
