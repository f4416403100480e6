import re
from itertools import combinations

import pytest

from rag.retrieval.page_map import PageMap
from rag.ui.library.map import map_html
from tests.support.lighthouse import make_page


@pytest.mark.parametrize("heights", [(0.5, 0.5, 0.5), (0.4, 0.5, 0.6), (0.46, 0.5, 0.54)])
def test_the_name_of_a_topic_is_beside_the_names_of_its_pages(heights: tuple[float, ...]) -> None:
    pages = [make_page(number, f"Lamp {number}", "The lamp.", "en") for number in range(3)]
    positions = {page.url_hash: (0.5, height) for page, height in zip(pages, heights, strict=True)}
    layout = PageMap(positions, ("Lamps",), dict.fromkeys(positions, 0))
    drawn = map_html(layout, pages, list(positions), "subject", "en")
    tops = [float(top) for top in re.findall(r"top:([\d.]+)%", drawn)]
    *names, topic = tops
    assert len(names) == 3 and min(abs(topic - name) for name in names) >= 3.6
    assert min(names) - 4 <= topic <= max(names) + 4


def test_names_of_topics_are_apart() -> None:
    pages = [make_page(number, f"Lamp {number}", "The lamp.", "en") for number in range(2)]
    positions = {page.url_hash: (0.5, 0.5) for page in pages}
    layout = PageMap(positions, ("Lamps", "Bells"), {page.url_hash: number for number, page in enumerate(pages)})
    drawn = map_html(layout, pages, list(positions), "subject", "en")
    tops = {float(top) for top in re.findall(r"top:([\d.]+)%", drawn)}
    assert len(tops) == 3 and min(abs(a - b) for a, b in combinations(tops, 2)) >= 3.6
