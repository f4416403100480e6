"""A chat server on loopback that speaks OpenAI's chat completions protocol and follows a script.

    with ChatServer(["Hello.", Reply(tool_calls=[Call("retrieve", {"query": "x"})])]) as server:
        model = server.model()
        ...
        assert server.requests[0].tools == ["retrieve"]

A script is a list of replies, used in turn, or a function of the request, such as `rules`,
which behaves like a plausible model. A reply is a Reply or its text.
`python -m tests.support.chat_server --port 8099` serves the rules, to try the app in a browser.
"""

from __future__ import annotations

import argparse
import itertools
import json
import socket
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rag.config import load_settings
from rag.models.chat import build_chat_model
from tests.support.chat_protocol import (
    DEEP,
    Call,
    Fault,
    Feature,
    Reply,
    Request,
    choice_of,
    deltas_of,
    encode_json,
    usage_of,
)
from tests.support.chat_rules import rules
from tests.support.loopback import Handler, LoopbackServer

__all__ = ["DEEP", "Call", "ChatServer", "Reply", "Request", "rules"]

Script = Sequence[Reply | str] | Callable[[Request], Reply | str]


class ChatServer(LoopbackServer):
    """A server that follows a script until closed.

    Requests that use a feature in `refuse` get the status `refuse_with`, with `refusal` as the message. With `key`
    every request needs it as a bearer token (else 401); with `models` others get 404. `listed_models` are the
    names that it lists, None for a server without a list.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        refuse: Collection[Feature] = (),
        refuse_with: int = 400,
        refusal: str = "",
        key: str = "",
        models: Collection[str] = (),
        listed_models: Collection[str] | None = ("test",),
        port: int = 0,
    ) -> None:
        super().__init__(_Handler, port=port)
        self.requests: list[Request] = []
        self.refuse = set(refuse)
        self._refuse_with, self._refusal = refuse_with, refusal
        self._key = key
        self._listed_models = listed_models
        self._models = models
        self._respond = script if callable(script) else _from_queue(script)

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def model(self, name: str = "test", **settings: Any) -> Any:
        """Return a client of this server."""
        return build_chat_model(load_settings(None, llm_model=name, llm_base_url=self.base_url, **settings))

    def listing(self, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the list of models."""
        if self._key and headers.get("authorization") != f"Bearer {self._key}":
            return 401, {"error": {"message": "Incorrect API key provided."}}
        if self._listed_models is None:
            return 404, {"error": {"message": "404 page not found"}}
        return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self._listed_models]}

    def reply_to(self, request: Request) -> Reply:
        """Return the script's reply, or an error if the request is refused."""
        with self._lock:
            self.requests.append(request)
            if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
                return Reply("Incorrect API key provided.", status=401)
            if self._models and request.body.get("model") not in self._models:
                return Reply(f"The model `{request.body.get('model')}` does not exist.", status=404)
            for feature in sorted(self.refuse):
                if request.asks_for(feature):
                    message = self._refusal or f"{feature} is not supported by this server."
                    return Reply(message, status=self._refuse_with)
            reply = self._respond(request)
        return Reply(reply) if isinstance(reply, str) else reply


def _from_queue(replies: Sequence[Reply | str]) -> Callable[[Request], Reply | str]:
    queue = list(replies)

    def respond(_: Request) -> Reply | str:
        # 418, so that no client retries and a test that runs out of replies fails immediately.
        return queue.pop(0) if queue else Reply("The script has no reply left.", status=418)

    return respond


class _Handler(Handler):
    _ids = itertools.count(1)

    def get(self) -> None:
        self._send(*self.server.owner.listing(self.given_headers()))

    def post(self) -> None:
        raw = self.read_body()
        if not self.path.endswith("/chat/completions"):
            return self._send(404, {"error": {"message": f"No such path: {self.path}"}})
        request = Request(self.path, self.given_headers(), json.loads(raw))
        reply = self.server.owner.reply_to(request)
        if reply.fault in ("html", "drip", "flood"):
            return self._misbehave(reply.fault)
        if reply.status != 200:
            error = {"message": reply.text, "type": "error", "code": str(reply.status)}
            return self._send(reply.status, {"error": error}, reply.headers)
        if request.stream and reply.oddity != "whole":
            return self._stream(request, reply)
        return self._whole(request, reply)

    def _whole(self, request: Request, reply: Reply) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or "".join(reply.parts) or None}
        if reply.tool_calls:
            message["tool_calls"] = [call.wire(place) for place, call in enumerate(reply.tool_calls)]
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        body = self._frame(request, "chat.completion") | {"choices": [choice], "usage": usage_of(request, reply)}
        if reply.fault == "hang":
            self.server.owner.closing.wait()
            return self._drop()
        self.server.owner.closing.wait(reply.pause)
        return self._send(200, body, reply.headers, fault=reply.fault)

    def _misbehave(self, fault: Fault) -> None:
        """Send a response that no chat server would send."""
        self.close_connection = True
        if fault == "html":
            page = b"<!doctype html><title>Welcome</title>"
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page) + page
            )
            return
        kind = b"X-Header: 1\r\n" if fault == "drip" else b"\r\n" + b" " * 2**20
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        while not self.server.owner.closing.wait(0.05 if fault == "drip" else 0):
            self.wfile.write(kind)
            self.wfile.flush()

    def _stream(self, request: Request, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        frame = self._frame(request, "chat.completion.chunk")
        deltas = deltas_of(reply)
        if reply.fault:
            deltas = deltas[: max(1, len(deltas) // 2)]
        for delta in deltas:
            self._event(frame | {"choices": [choice_of(delta, reply)]})
            self.server.owner.closing.wait(reply.pause)
        if reply.fault == "hang":
            self.server.owner.closing.wait()
        if reply.fault == "garbled":
            self._chunk(b'data: {"id": "chatcmpl-0", "choi\n\n')
        if reply.fault == "nested":
            self._chunk(b'data: {"choices": %b}\n\n' % DEEP.encode())
        if reply.fault in ("hang", "cut"):
            return self._drop()
        self._event(frame | {"choices": [choice_of({}, reply, last=True)]})
        if (request.body.get("stream_options") or {}).get("include_usage"):
            self._event(frame | {"choices": [], "usage": usage_of(request, reply)})
        if reply.oddity != "no_reason_no_done":
            self._chunk(b"data: [DONE]\n\n")
        return self._chunk(b"")

    def _frame(self, request: Request, kind: str) -> dict[str, Any]:
        model = request.body.get("model", "")
        return {"id": f"chatcmpl-{next(self._ids)}", "object": kind, "created": 1_700_000_000, "model": model}

    def _event(self, body: dict[str, Any]) -> None:
        self._chunk(b"data: " + encode_json(body) + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send(
        self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None, *, fault: Fault = ""
    ) -> None:
        data = encode_json(body)
        if fault == "garbled":
            data = data[: len(data) // 2]
        if fault == "nested":
            data = b'{"choices": %b}' % DEEP.encode()
        self.send_head(status, len(data), {"Content-Type": "application/json", **(headers or {})})
        self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
        if fault == "cut":
            self._drop()

    def _drop(self) -> None:
        """Drop the connection in the middle of a message, as a crashed server does."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serve the rules until interrupted."""
    parser = argparse.ArgumentParser(description="A scripted chat server for trying the app without a model.")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--pause", type=float, default=0.03, help="seconds between the pieces of a stream")
    options = parser.parse_args()

    def respond(request: Request) -> Reply:
        reply = rules(request)
        return Reply(reply.text, reply.tool_calls, pause=options.pause)

    with ChatServer(respond, port=options.port) as server:
        print(f"LLM_BASE_URL={server.base_url} LLM_MODEL=test")  # noqa: T201 - its only output
        threading.Event().wait()


if __name__ == "__main__":
    main()
