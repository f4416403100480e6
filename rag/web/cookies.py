"""The cookies of a single fetch: some sites set one, redirect, and give the page only to who brings it back."""

from __future__ import annotations

from collections import defaultdict
from email.message import Message
from http.cookiejar import CookieJar
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import Request

from rag.web.guard import CheckedUrl
from rag.web.http_headers import Headers


class FetchCookies:
    """Cookies that live as long as one fetch. Each goes back only to the scheme, host and port that set it."""

    def __init__(self) -> None:
        self._jars: defaultdict[tuple[str, str], CookieJar] = defaultdict(CookieJar)

    def keep(self, url: CheckedUrl, headers: Headers) -> None:
        """Store what the answer of `url` sets."""
        answer = Message()
        for name, value in headers:
            if name.lower() == b"set-cookie":
                answer["Set-Cookie"] = value.decode("latin-1")
        if answer:
            response = cast(Any, SimpleNamespace(info=lambda: answer))  # all that the jar asks of one
            self._jars[url.scheme, url.authority].extract_cookies(response, _request(url))

    def header(self, url: CheckedUrl) -> list[tuple[bytes, bytes]]:
        """Return the Cookie header that a request for `url` carries, as a list without it where there is none."""
        request = _request(url)
        self._jars[url.scheme, url.authority].add_cookie_header(request)
        value = request.get_header("Cookie")
        return [(b"Cookie", value.encode("latin-1"))] if value else []


def _request(url: CheckedUrl) -> Request:
    return Request(f"{url.scheme}://{url.authority}{url.target}")
