"""The rules in a robots.txt: RFC 9309, and lines read as forgivingly as by Google's parser."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from rag.web.url_key import normalise_escapes

_TOKEN = re.compile(r"[a-z_-]*", re.ASCII | re.IGNORECASE)
_LINE = re.compile(r"\s*(?P<key>user[-\s]*agent\b|[^\s:]++)\s*+:?\s*(?P<value>.*)", re.IGNORECASE | re.DOTALL)
_LINE_END = re.compile(r"\r\n?|\n")
_RATE = re.compile(r"(?P<pages>\d{1,6})\s?/\s?(?P<count>\d{1,6})(?P<unit>[smhd]?)", re.ASCII | re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{0,3})?", re.ASCII)
_ESCAPE = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_DISALLOW = frozenset(["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"])
_SITEMAP = frozenset(["sitemap", "site-map"])
_EVERYBODY = "*"
_NOTHING = "\n"  # stands in no address


@dataclass(frozen=True, slots=True)
class _Rule:
    """One allow or disallow line; `parts` are what stands between its stars."""

    allows: bool
    parts: tuple[str, ...]
    at_end: bool
    length: int

    def matches(self, path: str) -> bool:
        first, *rest = self.parts
        place, end = len(first), len(path)
        if not path.startswith(first):
            return False
        if self.at_end:
            if not rest:
                return place == end
            end -= len(rest[-1])
            if end < place or not path.endswith(rest.pop()):
                return False
        for part in rest:
            place = path.find(part, place, end) + len(part)
            if place < len(part):
                return False
        return True


@dataclass(slots=True)
class _Group:
    """What is asked of the programs named together: rules, and seconds between two requests."""

    rules: list[_Rule] = field(default_factory=list)
    delay: float = 0.0


@dataclass(slots=True)
class RobotsRules:
    """What a robots.txt asks of each program, and the sitemaps that it names, in order."""

    sitemaps: list[str] = field(default_factory=list)
    groups: dict[str, list[_Group]] = field(default_factory=lambda: defaultdict(list))

    def can_fetch(self, url: str, agent: str) -> bool:
        """Whether `agent` may read `url`, which is spelled as it goes on the wire. The longest rule decides."""
        path = _path(url)
        rules = (rule for group in self._groups(agent) for rule in group.rules)
        return max(((rule.length, rule.allows) for rule in rules if rule.matches(path)), default=(0, True))[1]

    def delay(self, agent: str) -> float:
        """Seconds that are wanted between two requests of `agent`."""
        return max((group.delay for group in self._groups(agent)), default=0.0)

    def _groups(self, agent: str) -> list[_Group]:
        return self.groups.get(agent.lower()) or self.groups.get(_EVERYBODY) or []


def parse_robots(text: str) -> RobotsRules:
    """The rules in the text of a robots.txt; what is no rule is passed over."""
    found = RobotsRules()
    group = _Group()
    for key, value in _lines(text):
        if key == "user-agent":
            group = _Group() if group.rules else group
            named = found.groups[_agent(value)]
            if not named or named[-1] is not group:
                named.append(group)
        elif key == "allow" or key in _DISALLOW:
            group.rules.extend(_rules(value, key == "allow"))
        elif key in _SITEMAP:
            found.sitemaps.append(value)
        else:
            group.delay = max(group.delay, _delay(key, value))
    return found


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in _LINE_END.split(text):
        match = _LINE.fullmatch(line.partition("#")[0].strip())
        if match:
            key = match["key"].lower()
            yield "user-agent" if key.startswith("user") else key, match["value"].strip()


def _agent(value: str) -> str:
    """The product token: "Pagelight/1.0" and "Pagelight bot" name Pagelight."""
    if value.split(maxsplit=1)[:1] == [_EVERYBODY]:
        return _EVERYBODY
    token = _TOKEN.match(value)
    return token[0].lower() if token else ""


def _rules(value: str, allows: bool) -> list[_Rule]:
    """The rules of a line, which fit nothing where it is empty.

    What allows a folder's index allows the folder; what refuses a path refuses it however it is escaped.
    """
    folder, slash, page = value.rpartition("/")
    also = f"{folder}/$" if allows and slash and page.startswith("index.htm") else value
    spelled = {value, also, *([] if allows else [normalise_escapes(value)])}
    return [_rule(one, allows) for one in sorted(spelled)]


def _rule(value: str, allows: bool) -> _Rule:
    pattern = _ESCAPE.sub(lambda match: match[0].upper(), quote(value, safe="".join(map(chr, range(33, 127)))))
    at_end = pattern.endswith("$")
    parts = pattern.removesuffix("$").split("*") if pattern else [_NOTHING]
    return _Rule(allows, tuple(parts), at_end, len(pattern))


def _delay(key: str, value: str) -> float:
    if key == "crawl-delay":
        number = _NUMBER.match(value)
        return float(number[0]) if number else 0.0
    rate = _RATE.match(value) if key == "request-rate" else None
    if not rate or not int(rate["pages"]):
        return 0.0
    return int(rate["count"]) * _SECONDS[rate["unit"].lower()] / int(rate["pages"])


def _path(url: str) -> str:
    """From the first slash, or the question mark, behind the host."""
    rest = url.partition("#")[0].partition("//")[2]
    start = min((place for place in (rest.find("/"), rest.find("?")) if place >= 0), default=len(rest))
    return rest[start:]
