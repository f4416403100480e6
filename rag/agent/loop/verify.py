"""The check of what was written, by the best verifier that is there; where it does not answer, by rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from rag.agent.citing.citations import Check, Checked
from rag.agent.loop.state import LoopContext
from rag.errors import ModelError
from rag.types import Passage

log = logging.getLogger(__name__)


async def verified(
    text: str, passages: Sequence[Passage], question: str, context: LoopContext, *, ask: bool = True
) -> Checked:
    """Check the statements of `text`. Without `ask`, and where no verifier answers, the verdicts of rules stand."""
    check = await asyncio.to_thread(Check, text, passages)
    for verifier in context.verifiers if ask else ():
        try:
            await check.consult(verifier, question, context.options.context_tokens)
            break
        except ModelError as error:
            log.info("the check by %s failed (%s)", verifier.checks_by, error.code)
    return check.result()
