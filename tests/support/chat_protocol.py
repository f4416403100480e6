"""Requests and replies of OpenAI's chat completions protocol, for tests to read and write."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Fault = Literal["", "hang", "cut", "garbled", "nested", "html", "drip", "flood"]
PASSAGE = re.compile(r"<(passage-[0-9a-f]+)>\s*\[(\d+)\][^\n]*\n(.*?)\s*</\1>", re.DOTALL)
"""A passage in a prompt: its tag, number and text."""
DEEP = "[" * 50_000 + "]" * 50_000
Oddity = Literal["", "no_reason", "empty_reason", "no_reason_no_done", "whole", "message"]
Feature = Literal[
    "json_schema", "json_object", "response_format", "tools", "tool_choice", "stream_options", "temperature"
]


@dataclass(frozen=True)
class Call:
    """A tool call; arguments given as a string are sent verbatim, well-formed or not."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)

    def wire(self, place: int) -> dict[str, Any]:
        raw = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)
        return {"id": f"call_{place}", "type": "function", "function": {"name": self.name, "arguments": raw}}


@dataclass(frozen=True)
class Reply:
    """One reply, with its faults and oddities.

    A `status` other than 200 sends an error with `text` as its message. Faults: `hang` sends nothing (in a stream:
    nothing after half of the pieces) until the server closes, `cut` closes the connection after half of the reply,
    `garbled` sends invalid JSON, `nested` JSON too deep for a parser, `html` a web page, `drip` endless headers,
    `flood` an endless body. Oddities of streams: `no_reason` and `empty_reason` lack the finish reason,
    `no_reason_no_done` also lacks `[DONE]`, `whole` sends no stream at all, `message` sends each piece as "message"
    instead of "delta". `pause` is the seconds between pieces. `parts` are the pieces to send instead of the words of
    the text.
    """

    text: str = ""
    tool_calls: Sequence[Call] = ()
    status: int = 200
    fault: Fault = ""
    pause: float = 0.0
    finish: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    oddity: Oddity = ""
    parts: Sequence[str] = ()

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.tool_calls else "stop")

    def pieces(self) -> list[str]:
        return list(self.parts) or re.findall(r"\s*[^\s\u2e80-\uffef]+|\s*[\u2e80-\uffef]{1,2}|\s+$", self.text)


@dataclass(frozen=True)
class Request:
    """A client's request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("messages", [])
        return found

    @property
    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]

    @property
    def forced_tool(self) -> str:
        choice = self.body.get("tool_choice")
        return str(choice["function"]["name"]) if isinstance(choice, dict) else ""

    @property
    def response_format(self) -> str:
        return str((self.body.get("response_format") or {}).get("type", ""))

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def last(self) -> str:
        """The text of the last user message."""
        texts = [message.get("content") or "" for message in self.messages if message.get("role") == "user"]
        return str(texts[-1]) if texts else ""

    @property
    def passages(self) -> list[tuple[int, str]]:
        """The passages in the last user message, by number."""
        return [(int(number), text) for _, number, text in PASSAGE.findall(self.last)]

    @property
    def rules(self) -> str:
        """The instructions: the text of all messages without the passages."""
        text = "\n".join(str(message.get("content") or "") for message in self.messages)
        return re.sub(r"<(passage-[0-9a-f]+)>.*?</\1>", "", text, flags=re.DOTALL)

    def asks_for(self, feature: Feature) -> bool:
        if feature in ("json_schema", "json_object"):
            return self.response_format == feature
        if feature == "tool_choice":
            return self.body.get("tool_choice") not in (None, "auto", "none")
        return bool(self.body.get(feature) is not None)


def encode_json(body: dict[str, Any]) -> bytes:
    """Encode a body as JSON, with escapes if it has lone surrogates, which UTF-8 cannot encode."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


def choice_of(delta: dict[str, Any], reply: Reply, *, last: bool = False) -> dict[str, Any]:
    """Return a piece of a stream, with the finish reason if it is the last one."""
    choice: dict[str, Any] = {"index": 0, "message" if reply.oddity == "message" else "delta": delta}
    if last and reply.oddity in ("no_reason", "no_reason_no_done"):
        return choice
    reason = "" if reply.oddity == "empty_reason" else reply.finish_reason
    return choice | {"finish_reason": reason if last else None}


def deltas_of(reply: Reply) -> list[dict[str, Any]]:
    """Return the reply as pieces of a stream: text by words, a tool call's arguments in up to three parts."""
    found: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    found += [{"content": piece} for piece in reply.pieces()]
    for place, call in enumerate(reply.tool_calls):
        wire = call.wire(place)
        raw = wire["function"]["arguments"]
        size = max(1, len(raw) // 3 + 1)
        opening = wire | {"index": place, "function": {"name": call.name, "arguments": ""}}
        found.append({"tool_calls": [opening]})
        for start in range(0, len(raw), size):
            part = {"index": place, "function": {"arguments": raw[start : start + size]}}
            found.append({"tool_calls": [part]})
    return found


def usage_of(request: Request, reply: Reply) -> dict[str, int]:
    prompt_tokens = sum(len(str(message.get("content") or "")) for message in request.messages) // 4
    reply_tokens = max(1, len(reply.pieces()))
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": reply_tokens,
        "total_tokens": prompt_tokens + reply_tokens,
    }
