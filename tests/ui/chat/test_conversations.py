from datetime import date

from rag.store.sql.conversation_table import Conversation
from rag.ui.chat.conversations import group_of


def test_conversations_are_listed_by_day_with_pinned_ones_first() -> None:
    today = date(2026, 3, 1)
    days = {
        "2026-03-01": "today",
        "2026-02-28": "yesterday",
        "2026-02-22": "week",
        "2026-01-31": "month",
        "2026-01-29": "older",
    }
    for day, name in days.items():
        moment = f"{day}T12:00:00+00:00"
        assert group_of(Conversation("c", "main", "", "Aso", moment, moment), today) == f"talk_{name}"
        assert group_of(Conversation("c", "main", "", "Aso", moment, moment, pinned=True), today) == "talk_pinned"
