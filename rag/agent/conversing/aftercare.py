"""What follows an answer without delaying it: questions to ask next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Final

from rag.agent.background import BACKGROUND
from rag.agent.conversing.followups import Likely, Suggester, suggestions
from rag.agent.run import counter_of, log_problem
from rag.agent.usage import CallBudget, Meter, Prices
from rag.types import Answer

log = logging.getLogger(__name__)

Keep = Callable[[Mapping[str, Any]], object]
_SECONDS: Final = 60.0


def propose(
    answer: Answer, reasoner: object, likely: Likely | None, keep: Keep, *, prices: Prices | None = None
) -> Future[None]:
    """Begin to look for questions to ask next; `keep` gets them, with what they cost, in a thread."""
    budget = CallBudget(1, meter=Meter(prices or Prices()))
    return asyncio.run_coroutine_threadsafe(_propose(answer, reasoner, likely, keep, budget), BACKGROUND.loop())


async def _propose(answer: Answer, reasoner: object, likely: Likely | None, keep: Keep, budget: CallBudget) -> None:
    work = asyncio.wait_for(_counted(answer, reasoner, likely, budget), _SECONDS)
    (found,) = await asyncio.gather(work, return_exceptions=True)
    if isinstance(found, BaseException):
        log_problem("no questions to ask next were found", found)
        return
    extra = {"suggestions": found, "suggestion_usage": asdict(budget.meter.usage()) if budget.used else None}
    (problem,) = await asyncio.gather(asyncio.to_thread(keep, extra), return_exceptions=True)
    if isinstance(problem, BaseException):
        log_problem("questions to ask next could not be kept", problem)


async def _counted(answer: Answer, reasoner: object, likely: Likely | None, budget: CallBudget) -> list[str]:
    """Run within a langchain run, whose callbacks count the call."""
    if not isinstance(reasoner, Suggester):
        return await suggestions(answer, reasoner, likely)
    from langchain_core.runnables import RunnableLambda

    async def found(_: Any) -> list[str]:
        return await suggestions(answer, reasoner, likely)

    counted: list[str] = await RunnableLambda(found).ainvoke(None, {"callbacks": [counter_of(budget)]})
    return counted
