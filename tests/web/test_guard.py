"""The pure policy: hostile addresses are refused for the right reason, harmless ones pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import FetchError
from rag.locales import say
from rag.web.guard import allow_list, check_addresses, check_url, is_literal, is_public, parse_address, printable
from tests.ingest.vectors import MISSING, load

SHARED = load("url_vectors.jsonl")


def cause_of(url: str, allow: frozenset[tuple[str, int]] = frozenset()) -> str:
    """Return why the guard refuses `url`; empty if it doesn't."""
    try:
        check_url(url, allow)
    except FetchError as error:
        assert error.code == "blocked"
        return str(error.notice.cause)
    return ""


@pytest.mark.skipif(not SHARED, reason=MISSING)
def test_shared_vectors() -> None:
    wrong = [row for row in SHARED if bool(cause_of(row["url"])) != (row["expect"] == "block")]
    assert not wrong
    assert {row["expect"] for row in SHARED} == {"allow", "block"}


HARMLESS = [
    "https://example.com/",
    "HTTP://EXAMPLE.COM:8080/Path?q=1#x",
    "https://example.com:8443",
    "http://1.1.1.1/",
    "https://[2620:fe::fe]/",
    "https://sub_domain.example.org/",
    "https://r3---sn-abc.example.com/",
    "https://bücher.example/straße",
    "https://中文.example/路径?问=答",
    "https://xn--bcher-kva.example/",
    "https://internal.example.com/",
    "https://example.com/?u=http://127.0.0.1/",
]


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("ftp://example.com/", "scheme"),
        ("http\u017f://8.8.8.8/", "scheme"),
        (" https://example.com/", "characters"),
        ("https://example.com/a b", "characters"),
        ("https://example.com/\u200b", "characters"),
        ("https://example.com/\ud800", "characters"),
        ("https:\\\\example.com\\", "characters"),
        ("https://user@example.com/", "userinfo"),
        ("https://example.com%2f.evil.example/", "host"),
        ("https://example..com/", "host"),
        ("https://-a.example.com/", "host"),
        ("https://example.com:99999/", "host"),
        ("https://example.com:\u0668\u0660/", "host"),
        ("http://\u212aitchen.example/", "host"),
        ("http://127。0。0。1/", "host"),
        ("http://0x7f.1/", "host"),
        ("http://2130706433/", "host"),
        ("http://8.8.8.08/", "host"),
        ("http://[::ffff:1.2.3.4%25a]/", "host"),
        ("https://xn--zzzzz-.example/", "host"),
        ("http://router/", "internal_name"),
        ("http://nas.local/", "internal_name"),
        ("http://a.cluster.local/", "internal_name"),
        ("http://db.home.arpa/", "internal_name"),
        ("http://LOCALHOST.:80/", "internal_name"),
        ("https://example.com:22/", "port"),
        ("http://127.0.0.1/", "private_address"),
        ("http://[::ffff:10.0.0.1]/", "private_address"),
        ("http://[64:ff9b::10.0.0.1]/", "private_address"),
        ("http://224.0.0.251/", "private_address"),
        ("http://169.254.169.254/latest/", "metadata"),
        ("http://100.100.100.200/", "metadata"),
        ("http://[fd00:ec2::254]/", "metadata"),
        ("http://[::ffff:169.254.169.254]/", "metadata"),
        ("https://example.com/" + "a" * 2048, "too_long"),
        *((url, "") for url in HARMLESS),
    ],
)
def test_causes(url: str, cause: str) -> None:
    assert cause_of(url) == cause


def test_parts_that_go_on_the_wire() -> None:
    checked = check_url("https://BÜCHER.example.:8443/straße/a%2fb?q=中#x")
    assert (checked.scheme, checked.host, checked.port) == ("https", "xn--bcher-kva.example", 8443)
    assert checked.target == "/stra%C3%9Fe/a%2fb?q=%E4%B8%AD"
    assert check_url("https://example.com/a/%2e%2E/b/./c'?q='#x").target == "/b/c'?q=%27"
    assert check_url("https://example.com/100%").target == "/100%"
    assert checked.authority == "xn--bcher-kva.example:8443"
    assert check_url("http://[2606:4700:0::1111]").authority == "[2606:4700::1111]"
    assert check_url("http://example.com").target == "/"


class TestAllowList:
    ALLOW = allow_list([("wiki.local", 9000), ("127.0.0.1", 80), ("::1", 8000), ("Intranet", 443)])

    @pytest.mark.parametrize(
        "url", ["http://wiki.local:9000/", "http://127.0.0.1/x", "http://[0:0::1]:8000/", "https://INTRANET./"]
    )
    def test_lifts_the_rules_for_its_pairs(self, url: str) -> None:
        assert check_url(url, self.ALLOW).allowed

    @pytest.mark.parametrize(
        "url",
        [
            "http://wiki.local/",
            "http://x.wiki.local:9000/",
            "http://127.0.0.1:8080/",
            "http://127.0.0.2/",
            "http://127.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://intranet/",
            "http://user@127.0.0.1/",
        ],
    )
    def test_but_for_no_others(self, url: str) -> None:
        assert cause_of(url, self.ALLOW)

    @pytest.mark.parametrize(
        "host", ["169.254.169.254", "168.63.129.16", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254"]
    )
    def test_never_for_metadata_services(self, host: str) -> None:
        url = f"http://[{host}]/" if ":" in host else f"http://{host}/"
        assert cause_of(url, allow_list([(host, 80)])) == "metadata"

    def test_the_message_names_the_setting_and_the_pair(self) -> None:
        with pytest.raises(FetchError) as raised:
            check_url("http://wiki.local:9000/")
        for language in ("en", "zh"):
            sentence = say(raised.value.notice, language)
            assert "FETCH_ALLOW_PRIVATE_HOSTS" in sentence
            assert "wiki.local:9000" in sentence


class TestAddresses:
    @pytest.mark.parametrize(
        "answers", [["93.184.216.34"], ["93.184.216.34", "2606:4700::1111"], ["64:ff9b::5db8:d822"]]
    )
    def test_public_answers(self, answers: list[str]) -> None:
        check_addresses(check_url("https://example.com/"), answers)

    @pytest.mark.parametrize(
        "answers",
        [
            ["93.184.216.34", "127.0.0.1"],
            ["::ffff:10.0.0.1"],
            ["64:ff9b::a00:1"],
            ["fe80::1%eth0"],
            ["2002:7f00:1::"],
            ["0.0.0.0"],
            ["rubbish"],
        ],
    )
    def test_one_wrong_answer_refuses_all(self, answers: list[str]) -> None:
        with pytest.raises(FetchError, match="was blocked"):
            check_addresses(check_url("https://example.com/"), answers)

    def test_allowed_names_may_be_private_but_not_metadata(self) -> None:
        url = check_url("http://wiki.local:9000/", allow_list([("wiki.local", 9000)]))
        check_addresses(url, ["10.0.0.7"])
        with pytest.raises(FetchError):
            check_addresses(url, ["10.0.0.7", "169.254.169.254"])

    @given(st.ip_addresses(v=4))
    def test_an_address_within_another_is_judged_alike(self, address: object) -> None:
        parsed = parse_address(str(address))
        assert is_public(parse_address(f"::ffff:{address}")) == is_public(parsed)
        assert is_public(parse_address(f"64:ff9b::{address}")) == is_public(parsed)


@given(st.text(max_size=60))
def test_whatever_passes_is_ascii_and_whole(text: str) -> None:
    try:
        checked = check_url("http://" + text)
    except FetchError:
        return
    assert checked.host.isascii()
    assert checked.target.isascii()
    assert not set(checked.host) & set(" \\@%/?#")
    assert is_literal(checked.host) or "." in checked.host
    assert check_url(f"http://{checked.authority}{checked.target}").host == checked.host


def test_messages_show_no_control_characters() -> None:
    assert printable("http://a\r\nb") == "http://a\ufffd\ufffdb"
    assert len(printable("x" * 5000)) == 200
