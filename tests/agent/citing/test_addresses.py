from __future__ import annotations

import time

import pytest

from rag.agent.citing.addresses import held_addresses, without_links

PAGES = [
    "The API is at https://api.example.com/v1 and needs a key. See www.foo.org.",
    "Docs: [here](https://docs.example.com/a_(b)). 访问https://zh.example.com/下载页面。",
]
HELD = held_addresses(PAGES)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("At https://api.example.com/v1.", "At `https://api.example.com/v1`."),
        ("At <https://api.example.com/v1>.", "At `https://api.example.com/v1`."),
        ("At **https://api.example.com/v1/**", "At **`https://api.example.com/v1/`**"),
        ("At (https://api.example.com/v1), yes", "At (`https://api.example.com/v1`), yes"),
        ("地址是https://api.example.com/v1。", "地址是`https://api.example.com/v1`。"),
        ("访问https://api.example.com/v1获取", "访问`https://api.example.com/v1`获取"),
        ("访问https://zh.example.com/下载页面。", "访问`https://zh.example.com/下载页面`。"),
        ("See www.foo.org!", "See `www.foo.org`!"),
        ("https://docs.example.com/a_(b)", "`https://docs.example.com/a_(b)`"),
        ("[https://api.example.com/v1](https://api.example.com/v1)", "`https://api.example.com/v1`"),
        ("[the API](https://api.example.com/v1)", "the API (`https://api.example.com/v1`)"),
        ("run `curl https://else.example/x`", "run `curl https://else.example/x`"),
        ("```\ncurl https://else.example/x\n[a](b)\n```", "```\ncurl https://else.example/x\n[a](b)\n```"),
    ],
)
def test_addresses_of_the_pages_stay_as_code(text: str, shown: str) -> None:
    assert without_links(text, HELD) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("At https://evil.example/x now", "At now"),
        ("At https://api.example.com now", "At now"),
        ("At https://api.example.com/v1/more.", "At."),
        ("At https://evil.example/?u=https://api.example.com/v1 now", "At now"),
        ("Look (https://evil.example).", "Look."),
        ("看https://evil.example/x。", "看。"),
        ("<https://evil.example>", ""),
        ("www.evil.example", ""),
        ('[click](https://evil.example "t")', "click"),
        ("[click](javascript:alert(1))", "click"),
        ("![x](https://api.example.com/v1)", "x"),
        ("[![x](https://evil.example/x.png)](https://evil.example)", "x"),
        ("[`x`](https://evil.example)", "`x`"),
        ("ht<https://evil.example>tps://evil.example/y", ""),
        ("[1](https://evil.example)", "[1]"),
        ("[[1]](https://evil.example)", "[1]"),
        ("[Passage 2](#x)", "[Passage 2]"),
    ],
)
def test_addresses_of_its_own_and_targets_go(text: str, shown: str) -> None:
    assert without_links(text, HELD).strip() == shown


@pytest.mark.parametrize(
    "unit", ["[", "[a](", "![a](", "http://", "https://a.b ", "(https://a.b", "<http", "`", "` `` "]
)
def test_a_reply_that_loops_is_read_quickly(unit: str) -> None:
    before = time.process_time()
    without_links(unit * (40_000 // len(unit)), HELD)
    assert time.process_time() - before < 1.0
