"""Two processes change one page of a server, in every order that their calls can have.

    python -m benchmarks.schedules [--only CHANGE …] [--most N]

The store's tests run some of these orders, this all of them, or N of each pair drawn at random: through the real code,
over the client's in-memory engine. After each the page has to be whole, and of a text that was given. Exits 1 where it
is not, and says in which order. Pairs of texts take minutes each; --only keeps the pairs of these changes.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, islice, product

from tests.store.support import Draft
from tests.store.test_interleavings import CHANGES, Change, Place, shared
from tests.support.stepping import Writer

_CASES_A_PLACE = 100  # the in-memory engine looks at all of it for each call
_STORED = ((), (0,))

Order = list[bool]
"""For each call whether it is the first process's; once one has ended the other makes the rest."""


def run(place: Place, texts: list[Draft], one: Change, other: Change, whose: Callable[[], bool]) -> Order:
    """Let both make their calls as `whose` says, until both have ended; the order that came of it."""
    left = Writer(shared(place.first), lambda: one(place.first, texts))
    right = Writer(shared(place.second), lambda: other(place.second, texts))
    made = Order()
    while not (left.done or right.done):
        made.append(whose())
        (left if made[-1] else right).step()
    left.finish()
    right.finish()
    return made


def following(made: Order) -> Order | None:
    """How the order begins that comes after this one; None after the last."""
    while made and not made[-1]:
        made.pop()
    return [*made[:-1], False] if made else None


def ends(names: tuple[str, str], is_stored: bool) -> set[int | None]:
    """Which texts the page may have once both changes are done; None for no page."""
    texts: set[int | None] = {int(name[-1]) for name in names if name.startswith("text")}
    if "removal" in names:
        return texts | {None}
    return texts or {0 if is_stored else None}


def each(names: tuple[str, str], stored: Sequence[int], chance: random.Random | None) -> Iterator[Order]:
    """The orders of two changes, each once it has been run; drawn without end where there is `chance`.

    Raises AssertionError, with the order, where the page is not whole after it.
    """
    begin: Order | None = []
    while begin is not None:
        place = Place()
        for _ in range(_CASES_A_PLACE):
            given, texts = iter(begin), place.page(*stored)
            whose = (lambda: chance.random() < 0.5) if chance else (lambda given=given: next(given, True))
            made = run(place, texts, CHANGES[names[0]], CHANGES[names[1]], whose)
            try:
                place.check(texts, ends(names, bool(stored)))
            except AssertionError as error:
                raise AssertionError(f"{' and '.join(names)}, in the order {made}: {error}") from error
            yield made
            begin = [] if chance else following([*made])
            if begin is None:
                break
        place.check_clean()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CHANGES), choices=CHANGES, metavar="CHANGE")
    parser.add_argument("--most", type=int)
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", "Payload indexes have no effect")
    for names, stored in product(combinations_with_replacement(options.only, 2), _STORED):
        chance = random.Random(1) if options.most else None
        try:
            count = sum(1 for _ in islice(each(names, stored, chance), options.most))
        except AssertionError as error:
            print(error)
            return 1
        print(f"{names[0]} and {names[1]}, {'there' if stored else 'new'}: {count} orders, all whole", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
