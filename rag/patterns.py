"""Regular expressions that are compiled at first use, as in Bazaar (`breezy.lazy_regex`).

Compiling those of all modules takes a tenth of the time to the first page, which needs few of them.
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
    """Return a pattern like `re.compile(pattern, flags)`, for names of modules; invalid ones fail at first use."""
    lazy = LazyPattern(pattern, flags)
    _patterns.append(lazy)
    return cast("re.Pattern[AnyStr]", lazy)


def compile_all() -> None:
    """Compile all patterns so far, so that no question has to wait for them."""
    for lazy in _patterns:
        if _NAMES[-1] not in vars(lazy):
            lazy.compile()


class LazyPattern:
    """A pattern that gets its methods from the compiled one when the first of them is needed."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle look for methods that a pattern lacks
            raise AttributeError(name)
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        """Return the compiled pattern; `re` caches it while several threads come here at once."""
        compiled = re.compile(self.pattern, self._flags)
        for name in _NAMES:
            setattr(self, name, getattr(compiled, name))
        return compiled
