"""An in-memory network: DNS answers and redirects from tables, through the fetcher's two hooks."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import httpcore

PUBLIC = "93.184.216.34"
_PAGE = b"<!doctype html><title>Fine</title><p>A page of the simulated network.</p>"


class SimulatedNetwork:
    """`resolve` and `connect` for a Fetcher; hosts that the table lacks have a public address.

    `connected` records the address of every connection.
    """

    def __init__(self, dns: Mapping[str, Sequence[str] | None], redirects: Mapping[str, str]) -> None:
        self.dns = dns
        self.redirects = redirects
        self.resolved: list[str] = []
        self.connected: list[str] = []

    def resolve(self, host: str, port: int) -> Sequence[str]:
        self.resolved.append(host)
        answers = self.dns.get(host, [PUBLIC])
        if answers is None:
            raise OSError("no such host")
        return answers

    def connect(self, address: str, port: int, timeout: float) -> httpcore.NetworkStream:
        self.connected.append(address)
        return _Stream(self)

    def answer(self, url: str) -> bytes:
        """Return the bytes of an HTTP response; a line break within a header is folded, as on the wire."""
        if url in self.redirects:
            location = self.redirects[url].replace("\r\n", "\r\n ")
            field = f"Location: {location}\r\n" if location else ""
            return f"HTTP/1.1 302 Found\r\n{field}Content-Length: 0\r\n\r\n".encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(_PAGE)}\r\n\r\n"
        return head.encode() + _PAGE


class _Stream(httpcore.NetworkStream):
    def __init__(self, network: SimulatedNetwork, scheme: str = "http") -> None:
        self._network = network
        self._scheme = scheme
        self._request = b""
        self._answer = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._request += buffer
        if b"\r\n\r\n" in self._request:
            lines = self._request.decode("latin-1").split("\r\n")
            target = lines[0].split(" ")[1]
            host = next(line[6:] for line in lines if line.lower().startswith("host: "))
            self._answer += self._network.answer(f"{self._scheme}://{host}{target}")
            self._request = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data, self._answer = self._answer[:max_bytes], self._answer[max_bytes:]
        return data

    def close(self) -> None:
        """Do nothing."""

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._network, "https")

    def get_extra_info(self, info: str) -> Any:
        return None
