"""robots.txt: what a site lets programs read, as RFC 9309 has it."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from rag.errors import FetchError, IngestError
from rag.web.fetch import Fetcher
from rag.web.guard import CheckedUrl, shown
from rag.web.robots_rules import RobotsRules, parse_robots
from rag.web.url_key import normalise_escapes

log = logging.getLogger(__name__)

AGENT = "Pagelight"
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 300.0
MAX_PARSED = 512 * 1024  # RFC 9309, section 2.5, wants 500 KiB at least
_MAX_FETCHED = 5 * 1024 * 1024
_MAX_SITES = 1000
_TOLD_AS_THEY_ARE = frozenset(["blocked", "unresolved", "unreachable"])

Site = tuple[str, str, int]


class Robots:
    """The rules of sites, fetched when first asked for and kept for an hour; serves many threads.

    What a site answers counts as RFC 9309, section 2.3.1, says: a status from 400 to 499 allows all, an
    error of the server or the network refuses all for some minutes, unless older rules are still known;
    429 is taken as an error of the server. A site's delay between requests is told to the fetcher's gates.
    """

    def __init__(self, fetcher: Fetcher, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._sites: OrderedDict[Site, _Site] = OrderedDict()
        self._lock = threading.Lock()

    def allowed(self, url: str) -> bool:
        """Whether a program may read `url`; False too for an address that is never fetched."""
        try:
            self.check(url)
        except IngestError:
            return False
        return True

    def check(self, url: str) -> None:
        """Raise IngestError, "robots_refused" or "robots_unreadable", where a program may not read `url`.

        Raises FetchError for an address that is never fetched, or whose server cannot be reached.
        """
        checked = self._fetcher.check(url)
        site = self._site(checked)
        if site.rules is None:
            raise _unreadable(site.failure, url, checked.host)
        spellings = {checked.target, normalise_escapes(checked.target)}
        if not all(site.rules.can_fetch(f"//{checked.authority}{target}", AGENT) for target in spellings):
            raise IngestError("robots_refused", url=shown(url), host=checked.host)

    def delay(self, url: str) -> float:
        """Seconds that the site of `url` wants between two requests; 0.0 where it does not say."""
        rules = self._site(self._fetcher.check(url)).rules
        return rules.delay(AGENT) if rules else 0.0

    def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that the robots.txt of the site of `url` names, in order."""
        rules = self._site(self._fetcher.check(url)).rules
        return list(dict.fromkeys(rules.sitemaps)) if rules else []

    def _site(self, url: CheckedUrl) -> _Site:
        """What is known of the site of `url`; without rules while they cannot be had and all is refused."""
        key = (url.scheme, url.host, url.port)
        with self._lock:
            site = self._sites.setdefault(key, _Site())
            self._sites.move_to_end(key)
            if len(self._sites) > _MAX_SITES:
                self._sites.popitem(last=False)
        with site.lock:
            if site.until is None or self._clock() >= site.until:
                site.failure = self._load(url, site)
                site.until = self._clock() + (RETRY_SECONDS if site.failure else KEPT_SECONDS)
        return site

    def _load(self, url: CheckedUrl, site: _Site) -> FetchError | None:
        """Put the rules into `site`, or leave it as it is and return what went wrong."""
        address = f"{url.scheme}://{url.authority}/robots.txt"
        try:
            body = self._fetcher.fetch(address, raw=_MAX_FETCHED).body
        except FetchError as error:
            if not _means_no_rules(error):
                log.info("%s: %s", address, error)
                return error
            body = b""
        site.rules = parse_rules(body)
        if wanted := site.rules.delay(AGENT):
            self._fetcher.gates.slow_down((url.host, url.port), wanted)
        return None


class _Site:
    """What is known of a site's rules, and until when."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: RobotsRules | None = None
        self.failure: FetchError | None = None
        self.until: float | None = None


def parse_rules(body: bytes) -> RobotsRules:
    """The rules in a robots.txt, of which MAX_PARSED bytes are read."""
    return parse_robots(body[:MAX_PARSED].decode("utf-8-sig", "replace"))


def _unreadable(failure: FetchError | None, url: str, host: str) -> IngestError:
    if failure and failure.code in _TOLD_AS_THEY_ARE:
        return FetchError(failure.code, **failure.notice.params)
    return IngestError("robots_unreadable", url=shown(url), host=host)


def _means_no_rules(error: FetchError) -> bool:
    """Whether a failed fetch says that the site has no rules, rather than that it cannot tell them now."""
    if error.code == "http_error":
        status = int(error.notice.params["status"])
        return 400 <= status < 500 and status != 429
    return error.code == "redirects"
