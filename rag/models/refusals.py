"""Features that a chat server does not offer: their detection, and the memory of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag.models.failures import model_error, status_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

ServerKey = tuple[str, str]

NOT_UNDERSTOOD: Final = frozenset({400, 422, 501})
"""Statuses of a server that does not understand the request, whatever its message."""

# The key, credit, size or rate was refused, or a gateway gave up: the same would happen without tools.
_OTHER_STATUSES: Final = frozenset({401, 402, 408, 413, 429, 504})
_TOOLS: Final = re.compile(r"(?<![a-z])tool(?!ong|kit|box)|function[ _-]?call|工具|函数调用")
_FORM: Final = re.compile(
    r"response[ _-]?format|schema|json[ _-]?(?:object|mode|output)|structured[ _-]?output|guided[ _-]|grammar"
    r"|结构化|json ?(?:模式|格式)"
)
_PAGE: Final = re.compile(r"<(?:!doctype|html|body)\b")

# Servers that refused tools, for the lifetime of the process.
_without_tools: set[ServerKey] = set()


def server_key(model: BaseChatModel) -> ServerKey:
    """Return the key for facts about a server: its address and the model's name."""
    return (_address(model) or model._llm_type, _name(model))


def takes_tools(model: BaseChatModel) -> bool:
    return server_key(model) not in _without_tools


def remember_no_tools(model: BaseChatModel) -> None:
    """Remember that the server takes no tools, if it can be distinguished from others."""
    if _address(model):
        _without_tools.add(server_key(model))


def refuses_tools(error: BaseException, model: BaseChatModel) -> bool:
    """True if the server says that it takes no tools. Statuses vary, so its words decide."""
    from langchain_core.exceptions import ModelInvalidRequestError

    if isinstance(error, NotImplementedError):
        return True
    message = _server_message(error, model) if status_of(error) or isinstance(error, ModelInvalidRequestError) else ""
    return bool(_TOOLS.search(message))


def refuses_form(error: BaseException, model: BaseChatModel) -> bool:
    """True if the server, or the model's class, does not know this way of asking for a filled form."""
    if isinstance(error, NotImplementedError) or status_of(error) in NOT_UNDERSTOOD:
        return True
    message = _server_message(error, model) if status_of(error) else ""
    return bool(_TOOLS.search(message) or _FORM.search(message))


def _server_message(error: BaseException, model: BaseChatModel) -> str:
    """Return the server's words about the request: none if they are about something else, or a gateway's page.

    The model's name is removed, since it may contain any of the words that are searched for.
    """
    text = str(error).lower()
    if status_of(error) in _OTHER_STATUSES or _PAGE.search(text) or model_error(error).code == "chat_too_long":
        return ""
    return re.sub(rf"(?<![\w-]){re.escape(_name(model).lower())}(?![\w-])", " ", text)


def _address(model: BaseChatModel) -> str:
    return str(getattr(model, "openai_api_base", None) or getattr(model, "base_url", None) or "")


def _name(model: BaseChatModel) -> str:
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)
