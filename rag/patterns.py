"""Regular expressions compiled on first use, as in Bazaar (`breezy.lazy_regex`).

Compiling all of them takes a tenth of the time to the first page, which needs only a few.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, Final, cast

_NAMES: Final = (
    *("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"),
    *("flags", "groups", "groupindex"),
)
_patterns: list[LazyPattern] = []


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a lazy `re.compile(pattern, flags)` for module-level constants; invalid patterns fail on first use."""
    lazy = LazyPattern(pattern, flags)
    _patterns.append(lazy)
    return cast("re.Pattern[AnyStr]", lazy)


def compile_all() -> None:
    """Compile all patterns created so far, so that no question waits for it."""
    for lazy in _patterns:
        if _NAMES[-1] not in vars(lazy):
            lazy.compile()


class LazyPattern:
    """A pattern that is compiled on first access to one of its methods."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle probe for special methods
            raise AttributeError(name)
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        """Compile the pattern and return it; concurrent calls are harmless, since `re` caches the result."""
        compiled = re.compile(self.pattern, self._flags)
        for name in _NAMES:
            setattr(self, name, getattr(compiled, name))
        return compiled
