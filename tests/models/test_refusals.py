"""How a server says that it takes no tools or no forms, in many words and with many a status."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rag.models import refusals
from rag.models.refusals import refuses_form, refuses_tools, remember_no_tools, takes_tools


class StatusError(OSError):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status


def model(name: str = "m", address: str = "http://localhost/v1") -> Any:
    return SimpleNamespace(model_name=name, openai_api_base=address, _llm_type="openai-chat")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: …"),
        (500, "tools param requires --jinja flag"),
        (501, "tool calling is not implemented"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (405, "Function calling is not enabled for this model"),
        (422, "unknown field `tool_choice`"),
        (503, "function_call is not available on this backend"),
        (400, "该模型不支持工具调用"),
        (500, "当前模型暂不支持函数调用"),
    ],
)
def test_no_tools(status: int, text: str) -> None:
    assert refuses_tools(StatusError(status, text), model())


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "The model `m` does not exist"),
        (404, "The model `acme-tool-use-8b` does not exist"),
        (400, "prompt too long; context toolong"),
        (400, "maximum context length is 10 tokens, of which the tools take 8"),
        (401, "This key may not use tools"),
        (429, "Rate limit reached for requests with tools"),
        (502, "<!DOCTYPE html><html><body>Bad gateway. Try our webmaster tools.</body></html>"),
        (500, "Internal Server Error"),
    ],
)
def test_failures_of_another_kind(status: int, text: str) -> None:
    assert not refuses_tools(StatusError(status, text), model("acme-tool-use-8b"))


def test_a_failure_without_a_status_says_nothing_about_tools() -> None:
    assert not refuses_tools(ValueError("tool_calls: invalid"), model())
    assert refuses_tools(NotImplementedError(), model())


@pytest.mark.parametrize(
    ("status", "text", "refused"),
    [
        (404, "No endpoints found that support response_format", True),
        (405, "json_schema is not supported", True),
        (500, "response_format not supported", True),
        (500, "Structured outputs are disabled", True),
        (503, "failed to build the grammar", True),
        (500, "不支持结构化输出", True),
        (404, "No endpoints found that support tool use", True),
        (400, "no", True),
        (422, "no", True),
        (501, "no", True),
        (404, "The model `m` does not exist", False),
        (500, "Internal Server Error", False),
        (401, "response_format is not for this key", False),
        (429, "too many requests with json_schema", False),
    ],
)
def test_no_forms(status: int, text: str, refused: bool) -> None:
    assert refuses_form(StatusError(status, text), model()) is refused


def test_it_is_remembered_of_a_server_and_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_without_tools", set())
    remember_no_tools(model())
    remember_no_tools(model("nowhere", ""))
    assert not takes_tools(model())
    assert takes_tools(model("other"))
    assert takes_tools(model(address="http://elsewhere/v1"))
    assert takes_tools(model("nowhere", ""))  # may be another server each time
