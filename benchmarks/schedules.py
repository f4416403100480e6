"""Two processes that change one page on a server, in every possible order of their calls.

    python -m benchmarks.schedules [--only CHANGE …] [--most N]

The store's tests run some of these orders; this runs all of them, or N random ones of each pair, through the real code
over the client's in-memory engine. After each, the page must be intact and have one of the allowed texts; otherwise it
prints the order and exits with 1. Pairs of texts take minutes each; --only selects pairs of these changes.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, islice, product

from tests.store.support import Draft
from tests.store.test_interleavings import CHANGES, Change, SharedLibrary, stepped
from tests.support.stepping import Writer

_CASES_PER_LIBRARY = 100  # the in-memory engine scans all pages for each call
_STORED = ((), (0,))

Order = list[bool]
"""For each call whether the first process makes it; once one ends, the other makes the rest."""


def run_interleaved(
    shared: SharedLibrary, texts: list[Draft], one: Change, other: Change, next_is_first: Callable[[], bool]
) -> Order:
    """Let both make their calls, as `next_is_first` chooses, until both end; return the resulting order."""
    left = Writer(stepped(shared.first), lambda: one(shared.first, texts))
    right = Writer(stepped(shared.second), lambda: other(shared.second, texts))
    order = Order()
    while not (left.done or right.done):
        order.append(next_is_first())
        (left if order[-1] else right).step()
    left.finish()
    right.finish()
    return order


def next_start(order: Order) -> Order | None:
    """Return the prefix of the next order; None after the last."""
    while order and not order[-1]:
        order.pop()
    return [*order[:-1], False] if order else None


def allowed_texts(names: tuple[str, str], is_stored: bool) -> set[int | None]:
    """Return the texts that the page may have after both changes; None for no page."""
    texts: set[int | None] = {int(name[-1]) for name in names if name.startswith("text")}
    if "removal" in names:
        return texts | {None}
    return texts or {0 if is_stored else None}


def run_orders(names: tuple[str, str], stored: Sequence[int], chance: random.Random | None) -> Iterator[Order]:
    """Run and yield the orders of two changes, with `chance` an endless random sample.

    Raises AssertionError with the order if the page is not intact after it.
    """
    begin: Order | None = []
    while begin is not None:
        shared = SharedLibrary()
        for _ in range(_CASES_PER_LIBRARY):
            moves, texts = iter(begin), shared.page(*stored)
            next_is_first = (lambda: chance.random() < 0.5) if chance else (lambda moves=moves: next(moves, True))
            order = run_interleaved(shared, texts, CHANGES[names[0]], CHANGES[names[1]], next_is_first)
            try:
                shared.check(texts, allowed_texts(names, bool(stored)))
            except AssertionError as error:
                raise AssertionError(f"{' and '.join(names)}, in the order {order}: {error}") from error
            yield order
            begin = [] if chance else next_start([*order])
            if begin is None:
                break
        shared.check_clean()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CHANGES), choices=CHANGES, metavar="CHANGE")
    parser.add_argument("--most", type=int)
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", "Payload indexes have no effect")
    for names, stored in product(combinations_with_replacement(options.only, 2), _STORED):
        chance = random.Random(1) if options.most else None
        try:
            count = sum(1 for _ in islice(run_orders(names, stored, chance), options.most))
        except AssertionError as error:
            print(error)
            return 1
        print(f"{names[0]} and {names[1]}, {'there' if stored else 'new'}: {count} orders, all whole", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
