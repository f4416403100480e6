"""The check of what was written: by code always, by the model where code cannot settle it and calls are left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from rag.agent.citing.citations import Check, Checked
from rag.agent.citing.verifier import MAX_DOUBTS, Verifier
from rag.agent.loop.state import LoopContext
from rag.errors import ModelError
from rag.types import Passage

log = logging.getLogger(__name__)


async def verified(text: str, passages: Sequence[Passage], context: LoopContext, *, ask: bool) -> Checked:
    """Check the statements of `text`. With `ask` a reasoner that can judge is asked once about the doubtful ones;
    where it does not answer, the verdicts of code stand."""
    check = await asyncio.to_thread(Check, text, passages)
    doubts = check.doubts()[:MAX_DOUBTS]
    if ask and doubts and isinstance(context.reasoner, Verifier) and context.budget.left:
        try:
            said = await context.reasoner.entails(doubts)
        except ModelError as error:
            log.info("statements are checked by code alone (%s)", error.code)
        else:
            check.settle({doubt.place: v for doubt, v in zip(doubts, said, strict=False) if v is not None})
    return check.result()
