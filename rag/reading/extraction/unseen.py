"""What a page holds only as structured data: the text that its scripts would draw, or that is folded away.

It is taken only for kinds of things whose statement is the page's own content, and only where what is
shown lacks it: a product's description and price, the answers of an FAQ, a recipe, the body of an article.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rag.reading.extraction.features import Trigrams, words_of
from rag.reading.extraction.structured import Facts, Thing, kinds_of, plain, text_of

_LACKING_SHARE = 0.4
_MIN_WORDS = 4


def unseen_passages(facts: Facts, shown: str) -> list[str]:
    """Markdown blocks of stated content that `shown`, all visible text of the page, lacks; each once."""
    known, found = Trigrams(shown), list[str]()
    for passage in _passages(facts, shown):
        words = words_of(passage)
        enough = len(words) >= _MIN_WORDS or not passage.isascii()
        if enough and passage not in found and known.share(words, passage) < _LACKING_SHARE:
            found.append(passage)
    return found


def _passages(facts: Facts, shown: str) -> Iterator[str]:
    done: set[str] = set()
    for thing in facts.things:
        for kind in kinds_of(thing):
            # Further products are related ones; questions are many.
            if kind in _READERS and (kind == "Question" or kind not in done):
                done.add(kind)
                yield from _READERS[kind](thing)
                if (price := _price(thing.get("offers"))) and price.partition(" ")[0] not in shown:
                    yield f"{text_of(thing.get('name'))}: {price}"


def _price(offers: object) -> str:
    offer = offers[0] if isinstance(offers, list) and offers else offers
    if not isinstance(offer, dict):
        return ""
    price, currency = text_of(offer.get("price") or offer.get("lowPrice")), text_of(offer.get("priceCurrency"))
    return f"{price} {currency}".strip() if price else ""


def _question(thing: Thing) -> Iterator[str]:
    answer = thing.get("acceptedAnswer") or thing.get("suggestedAnswer")
    answer = answer[0] if isinstance(answer, list) and answer else answer
    text = plain(str(answer.get("text") or "")) if isinstance(answer, dict) else ""
    if text:
        yield f"**{text_of(thing.get('name'))}**\n\n{text}"


def _recipe(thing: Thing) -> Iterator[str]:
    for name in ("recipeIngredient", "recipeInstructions"):
        values = thing.get(name)
        lines = [_step(value) for value in values] if isinstance(values, list) else [text_of(values)]
        yield "\n".join(f"- {line}" for line in lines if line)


def _step(value: object) -> str:
    return text_of(value.get("text") or value.get("name")) if isinstance(value, dict) else text_of(value)


def _article(thing: Thing) -> Iterator[str]:
    yield text_of(thing.get("articleBody"))


def _described(thing: Thing) -> Iterator[str]:
    yield text_of(thing.get("description"))


_READERS: dict[str, Callable[[Thing], Iterator[str]]] = {
    "Question": _question,
    "Recipe": _recipe,
    **dict.fromkeys(("Article", "NewsArticle", "BlogPosting", "TechArticle"), _article),
    **dict.fromkeys(
        ("Product", "ProductGroup", "JobPosting", "Course", "SoftwareApplication", "Book", "Event"), _described
    ),
}
