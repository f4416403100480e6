"""Malformed addresses that a store may contain: none of them may make rendering or exporting fail."""

from __future__ import annotations

ODD_ADDRESSES = (
    "http://[::1/x",
    "http://[",
    "https://[v1.x]/",
    "http://a.example:99999/",
    "http://a.example:port/",
    "https:///x",
    "//a.example/x",
    "javascript:alert(1)",
    "https://a.example/\ud800",
    "https://a.example/%ED%A0%80%",
    "https://a.example/\x00\x1b[2J\r\nSet-Cookie: x",
    "https://a.example/\u202egnp.exe",
    "https://a.example/\ufffe\uffff",
    "https://℀.example/",
    "https://xn--a.example/",
    "file:///a\n%00.md",
    "file://[",
    "https://a.example/<script>`'\"](x)",
    "x" * 5000,
    "",
)
