from rag.types import Decision, IngestResult, IngestStatus
from rag.ui.decisions import choices_of
from tests.support.fake_app import FakeItem


def choices(status: IngestStatus, source: str, *offered: Decision) -> list[Decision]:
    result = IngestResult(source, source, "", status, "timeout", "", choices=offered)
    return choices_of(FakeItem(0, source), result)  # type: ignore[arg-type]


def test_what_the_result_offers_comes_in_one_order() -> None:
    assert choices("duplicate", "https://a.example/", "skip", "refresh", "keep_both") == [
        "refresh",
        "keep_both",
        "skip",
    ]
    assert choices("held", "https://a.example/", "skip", "add_anyway") == ["add_anyway", "skip"]


def test_another_try_is_offered_where_it_can_help() -> None:
    assert choices("failed", "https://a.example/") == ["retry"]
    assert choices("failed", "broken.pdf") == []
    assert choices("added", "https://a.example/") == []
