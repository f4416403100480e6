from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from rag.checking.fragments import text_fragment

URL = "https://example.org/page"
PAGE = """# The lamp

- **Wound** daily, by two & a half-time keeper
- Wound nightly

| Part | Weight |
| --- | --- |
| Lens | 12 kg |
| Lamp | 12 kg |

The lamp was wound every four hours. A keeper who slept lost his place. The lamp was wound every four hours.

```
lamp --wind    4h
```
灯每四个小时上一次发条。大雾时，每分钟敲两次钟。"""


def terms(quote: str, page: str = PAGE, occurrence: int = 0) -> list[str]:
    start = [match.start() for match in re.finditer(re.escape(quote), page)][occurrence]
    address = text_fragment(URL, page, start, start + len(quote))
    assert address.startswith(f"{URL}#:~:text=")
    raw = address.split("text=")[1].split(",")
    prefix = [unquote(term[:-1]) + "-" for term in raw if term.endswith("-")]
    suffix = ["-" + unquote(term[1:]) for term in raw if term.startswith("-")]
    return [*prefix, *(unquote(term) for term in raw if "-" not in (term[0], term[-1])), *suffix]


def test_a_sentence_that_is_unique_stands_alone() -> None:
    assert terms("A keeper who slept lost his place.") == ["A keeper who slept lost his place"]


def test_a_sentence_that_is_not_gets_what_stands_beside_it() -> None:
    quote = "The lamp was wound every four hours."
    assert terms(quote, occurrence=1) == ["who slept lost his place.-".replace("who ", ""), quote[:-1]] or terms(
        quote, occurrence=1
    )[0].endswith("lost his place.-")
    assert terms(quote)[0] != terms(quote, occurrence=1)[0]


def test_markup_is_not_on_the_page() -> None:
    assert terms("- **Wound** daily, by two & a half-time keeper") == ["Wound daily, by two & a half-time keeper"]
    assert terms("# The lamp\n") == ["The lamp"]


def test_signs_of_the_directive_are_encoded() -> None:
    start = PAGE.index("**Wound**")
    address = text_fragment(URL, PAGE, start, PAGE.index("\n- Wound nightly"))
    assert address.endswith("text=Wound%20daily%2C%20by%20two%20%26%20a%20half%2Dtime%20keeper")


def test_across_blocks_a_beginning_and_an_end() -> None:
    assert terms("| Lens | 12 kg |") == ["Lens", "12 kg"]
    found = terms("- **Wound** daily, by two & a half-time keeper\n- Wound nightly")
    assert found == ["Wound daily, by two & a half-time keeper", "Wound nightly"] or found[-1] == "Wound nightly"


def test_wide_gaps_of_code_divide_it() -> None:
    assert terms("lamp --wind    4h") == ["lamp --wind", "4h"]


def test_long_sentences_by_whole_words_at_both_ends() -> None:
    words = [f"word{i}" for i in range(60)]
    start, end = terms(" ".join(words) + ".", page="Before it. " + " ".join(words) + ". After it.")
    assert start == " ".join(words[:5])
    assert end == " ".join(words[-5:])


def test_chinese_divides_at_its_own_marks() -> None:
    assert terms("灯每四个小时上一次发条。") == ["灯每四个小时上一次发条"]
    long = "每年春天清明之前，茶农们都会上山采茶，用十道手法炒制，然后装进陶罐里存放起来，等到夏天才卖给远方的客人。"
    start, end = terms(long, page="龙井茶产于杭州。" + long)
    assert long.startswith(start) and long.rstrip("。").endswith(end)
    assert long[len(start)] == "，" and long[long.rindex(end) - 1] == "，"


@pytest.mark.parametrize(
    ("url", "begin"),
    [
        ("https://example.org/#part", "https://example.org/#part:~:text="),
        ("https://example.org/#part:~:text=old", "https://example.org/#part:~:text="),
        ("https://example.org/?a=1", "https://example.org/?a=1#:~:text="),
    ],
)
def test_a_fragment_of_the_address_is_kept(url: str, begin: str) -> None:
    assert text_fragment(url, PAGE, 0, 10).startswith(begin)


def test_nothing_that_is_rendered_leads_to_the_page_itself() -> None:
    start = PAGE.index("| --- |")
    assert text_fragment(URL, PAGE, start, start + 13) == URL
    assert text_fragment(URL, "", 0, 0) == URL
