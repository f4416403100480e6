"""Links to sentences of the sample pages, opened in a real browser."""

import random

import pytest
from playwright.sync_api import Browser

from benchmarks.fragments import EXAMPLES, Citation, PageSite, citations, find_fault, open_page
from rag.checking.fragments import text_fragment

CITED = list(
    citations(
        [(f"/{file.name}", "sample", file.read_bytes()) for file in sorted(EXAMPLES.glob("*.html"))],
        8,
        random.Random(5),
    )
)


@pytest.mark.parametrize("cited", CITED, ids=lambda cited: cited.path)
def test_the_sentence_is_marked_and_in_sight(browser: Browser, cited: Citation) -> None:
    with PageSite({f"/{file.name}": file.read_bytes() for file in EXAMPLES.glob("*.html")}) as site:
        page = open_page(browser, site.address)
        assert find_fault(page, site.address, cited) == "", cited.sentence
        page.close()


def test_a_link_that_leads_elsewhere_is_noticed(browser: Browser) -> None:
    """The check can fail: the link to one sentence is not a link to another."""
    first, second = (cited for cited in CITED[:2])
    with PageSite({first.path: (EXAMPLES / first.path[1:]).read_bytes()}) as site:
        page = open_page(browser, site.address)
        wrong = Citation(
            first.path, "sample", first.text + second.sentence, len(first.text), len(first.text + second.sentence)
        )
        assert text_fragment("", wrong.text, wrong.start, wrong.end)
        assert find_fault(page, site.address, wrong) != ""
        page.close()
