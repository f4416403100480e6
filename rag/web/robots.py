"""robots.txt: a site's rules for crawlers, as in RFC 9309, parsed as leniently as by Google's parser."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from rag.errors import FetchError, IngestError
from rag.text import lazy_regex
from rag.web.fetch import Fetcher
from rag.web.guard import CheckedUrl, printable
from rag.web.media import MEGABYTE
from rag.web.urls import normalise_escapes

log = logging.getLogger(__name__)

AGENT = "Pagelight"
CACHE_SECONDS = 3600.0
RETRY_SECONDS = 300.0
MAX_PARSED = 512 * 1024  # RFC 9309, section 2.5, requires at least 500 KiB
_MAX_FETCHED = 5 * MEGABYTE
_MAX_SITES = 1000
_FORWARDED_CODES = frozenset(["blocked", "unresolved", "unreachable"])

Site = tuple[str, str, int]
_TOKEN = lazy_regex(r"[a-z_-]*", re.ASCII | re.IGNORECASE)
_LINE = lazy_regex(r"\s*(?P<key>user[-\s]*agent\b|[^\s:]++)\s*+:?\s*(?P<value>.*)", re.IGNORECASE | re.DOTALL)
_LINE_END = lazy_regex(r"\r\n?|\n")
_RATE = lazy_regex(r"(?P<pages>\d{1,6})\s?/\s?(?P<count>\d{1,6})(?P<unit>[smhd]?)", re.ASCII | re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = lazy_regex(r"\d{1,6}(?:\.\d{0,3})?", re.ASCII)
_ESCAPE = lazy_regex(r"%[0-9a-f]{2}", re.IGNORECASE)
_DISALLOW = frozenset(["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"])
_SITEMAP = frozenset(["sitemap", "site-map"])
_ANY_AGENT = "*"
_NO_MATCH = "\n"  # occurs in no URL


class Robots:
    """The rules of sites, fetched when needed and cached for an hour; safe to share between threads.

    Failures are handled as in RFC 9309, section 2.3.1: a 4xx status and broken redirects allow everything; 429 and
    server or network errors block everything for RETRY_SECONDS, unless older rules are cached. A site's crawl delay is
    passed to the fetcher's rate limiter.
    """

    def __init__(self, fetcher: Fetcher, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._sites: OrderedDict[Site, _Site] = OrderedDict()
        self._lock = threading.Lock()

    def is_allowed(self, url: str) -> bool:
        """Return whether a crawler may fetch `url`; False if `check` raises."""
        try:
            self.check(url)
        except IngestError:
            return False
        return True

    def check(self, url: str) -> None:
        """Raise IngestError, "robots_refused" or "robots_unreadable", if a crawler may not fetch `url`.

        Raises FetchError if the URL is blocked or its server is unreachable.
        """
        checked = self._fetcher.check(url)
        site = self._site(checked)
        if site.rules is None:
            if site.failure and site.failure.code in _FORWARDED_CODES:
                raise FetchError(site.failure.code, **site.failure.notice.params)
            raise IngestError("robots_unreadable", url=printable(url), host=checked.host)
        spellings = {checked.target, normalise_escapes(checked.target)}
        if not all(site.rules.can_fetch(f"//{checked.authority}{target}", AGENT) for target in spellings):
            raise IngestError("robots_refused", url=printable(url), host=checked.host)

    def sitemaps(self, url: str) -> list[str]:
        """Return the sitemaps named in the robots.txt of the site of `url`, in order."""
        rules = self._site(self._fetcher.check(url)).rules
        return list(dict.fromkeys(rules.sitemaps)) if rules else []

    def _site(self, url: CheckedUrl) -> _Site:
        """Return the cached rules of the site of `url`, loaded if needed; without rules, everything is blocked."""
        key = (url.scheme, url.host, url.port)
        with self._lock:
            site = self._sites.setdefault(key, _Site())
            self._sites.move_to_end(key)
            if len(self._sites) > _MAX_SITES:
                self._sites.popitem(last=False)
        with site.lock:
            if site.until is None or self._clock() >= site.until:
                site.failure = self._load(url, site)
                site.until = self._clock() + (RETRY_SECONDS if site.failure else CACHE_SECONDS)
        return site

    def _load(self, url: CheckedUrl, site: _Site) -> FetchError | None:
        """Load the rules into `site`, or leave it unchanged and return the error."""
        address = f"{url.scheme}://{url.authority}/robots.txt"
        try:
            body = self._fetcher.fetch(address, max_raw_bytes=_MAX_FETCHED).body
        except FetchError as error:
            status = int(error.notice.params["status"]) if error.code == "http_error" else 0
            has_no_rules = error.code == "redirects" or (400 <= status < 500 and status != 429)
            if not has_no_rules:  # they are unavailable for now
                log.info("%s: %s", address, error)
                return error
            body = b""
        site.rules = parse_rules(body)
        if delay := site.rules.delay(AGENT):
            self._fetcher.rate_limiter.slow_down((url.host, url.port), delay)
        return None


@dataclass(slots=True)
class _Site:
    """The cached rules of a site and their expiry."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rules: RobotsRules | None = None
    failure: FetchError | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    """An allow or disallow rule; `parts` are the literals between its `*` wildcards, `at_end` means a final `$`."""

    allows: bool
    parts: tuple[str, ...]
    at_end: bool
    length: int

    def matches(self, path: str) -> bool:
        first, *others = self.parts
        position, end = len(first), len(path)
        if not path.startswith(first):
            return False
        if self.at_end:
            if not others:
                return position == end
            end -= len(others[-1])
            if end < position or not path.endswith(others.pop()):
                return False
        for part in others:
            position = path.find(part, position, end) + len(part)
            if position < len(part):
                return False
        return True


@dataclass(slots=True)
class _Group:
    """The rules for a group of user agents, and their crawl delay in seconds."""

    rules: list[_Rule] = field(default_factory=list)
    delay: float = 0.0


@dataclass(slots=True)
class RobotsRules:
    """The rules of a robots.txt by user agent, and its sitemaps in order."""

    sitemaps: list[str] = field(default_factory=list)
    groups: dict[str, list[_Group]] = field(default_factory=lambda: defaultdict(list))

    def can_fetch(self, url: str, agent: str) -> bool:
        """Return whether `agent` may fetch `url`, spelled as in the request. The longest matching rule decides."""
        rest = url.partition("#")[0].partition("//")[2]
        starts = (position for position in (rest.find("/"), rest.find("?")) if position >= 0)
        path = rest[min(starts, default=len(rest)) :]
        rules = (rule for group in self._groups(agent) for rule in group.rules)
        return max(((rule.length, rule.allows) for rule in rules if rule.matches(path)), default=(0, True))[1]

    def delay(self, agent: str) -> float:
        """Return the crawl delay for `agent` in seconds."""
        return max((group.delay for group in self._groups(agent)), default=0.0)

    def _groups(self, agent: str) -> list[_Group]:
        return self.groups.get(agent.lower()) or self.groups.get(_ANY_AGENT) or []


def parse_rules(body: bytes) -> RobotsRules:
    """Parse the first MAX_PARSED bytes of a robots.txt; invalid lines are skipped."""
    rules = RobotsRules()
    group = _Group()
    for key, value in _lines(body[:MAX_PARSED].decode("utf-8-sig", "replace")):
        if key == "user-agent":
            group = _Group() if group.rules else group
            groups = rules.groups[_agent(value)]
            if not groups or groups[-1] is not group:
                groups.append(group)
        elif key == "allow" or key in _DISALLOW:
            group.rules.extend(_rules(value, key == "allow"))
        elif key in _SITEMAP:
            rules.sitemaps.append(value)
        else:
            group.delay = max(group.delay, _delay(key, value))
    return rules


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in _LINE_END.split(text):
        match = _LINE.fullmatch(line.partition("#")[0].strip())
        if match:
            key = match["key"].lower()
            yield "user-agent" if key.startswith("user") else key, match["value"].strip()


def _agent(value: str) -> str:
    """Return the product token: "Pagelight/1.0" and "Pagelight bot" both mean Pagelight."""
    if value.split(maxsplit=1)[:1] == [_ANY_AGENT]:
        return _ANY_AGENT
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _rules(value: str, allows: bool) -> list[_Rule]:
    """Return the rules of a line; an empty value matches nothing.

    A rule that allows a folder's index also allows the folder; one that blocks a path blocks all its escaped spellings.
    """
    folder, slash, page = value.rpartition("/")
    extra = f"{folder}/$" if allows and slash and page.startswith("index.htm") else value
    rules = []
    for spelling in sorted({value, extra, *([] if allows else [normalise_escapes(value)])}):
        pattern = _ESCAPE.sub(lambda match: match[0].upper(), quote(spelling, safe="".join(map(chr, range(33, 127)))))
        parts = pattern.removesuffix("$").split("*") if pattern else [_NO_MATCH]
        rules.append(_Rule(allows, tuple(parts), pattern.endswith("$"), len(pattern)))
    return rules


def _delay(key: str, value: str) -> float:
    if key == "crawl-delay":
        number = _NUMBER.match(value)
        return float(number[0]) if number else 0.0
    rate = _RATE.match(value) if key == "request-rate" else None
    if not rate or not int(rate["pages"]):
        return 0.0
    return int(rate["count"]) * _SECONDS[rate["unit"].lower()] / int(rate["pages"])
