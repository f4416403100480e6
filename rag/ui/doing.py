"""What a click does: done at once, and where it fails, said in one sentence without losing the page."""

from __future__ import annotations

from collections.abc import Callable

from rag.errors import RagError
from rag.messages import say
from rag.ui.session import session
from rag.ui.strings import Language


def attempt(action: Callable[[], object], language: Language, done: str = "") -> bool:
    """Run `action`; its failure, or else the words `done`, are said in passing when the page is drawn next."""
    try:
        action()
    except RagError as error:
        session().notes.append(say(error.notice, language))
        return False
    if done:
        session().notes.append(done)
    return True
