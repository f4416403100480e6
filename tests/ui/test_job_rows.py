import pytest

from rag.types import IngestResult
from rag.ui.jobs import row_markdown, summary
from tests.support.fake_app import FakeItem


def item(status: str, reason: str = "timeout", **params: object) -> FakeItem:
    url = "https://example.org/a"
    result = IngestResult(url, url, "0" * 32, status, reason, "", params=params)  # type: ignore[arg-type]
    return FakeItem(0, url, "done", result)


def test_a_row_moves_through_its_stages() -> None:
    row = row_markdown(FakeItem(0, "https://example.org/a", "chunking"), False, "en")  # type: ignore[arg-type]
    assert ":primary[●●●]:gray[○○○]" in row
    assert "Splitting" in row
    assert row.endswith("example.org/a")


def test_a_failure_says_why_in_the_readers_language() -> None:
    failed = item("failed", url="https://example.org/a", seconds=30)
    assert "within 30 seconds" in row_markdown(failed, True, "en")  # type: ignore[arg-type]
    assert "30 秒" in row_markdown(failed, True, "zh")  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["![x](https://evil.example/x.png).md", "https://e.example/:smile:/$x$"])
def test_a_source_is_outside_text(source: str) -> None:
    row = row_markdown(FakeItem(0, source), False, "en")  # type: ignore[arg-type]
    assert "![" not in row
    assert ":smile:" not in row


def test_the_summary_counts_what_ended() -> None:
    items = [item("added"), item("added"), item("failed"), FakeItem(3, "x")]
    assert summary(items, "en") == "2 added · 1 failed"  # type: ignore[arg-type]
    assert summary([], "zh") == "没有添加"
