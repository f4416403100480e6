from __future__ import annotations

from rag.types import Step
from rag.ui.chat.turn_actions import followup_line

FOLLOWED = (Step("enter", 1.0, {}), Step("condense", 1.0, {"before": ["Where is Aso?", "When did *it* erupt?"]}))


def test_the_search_query_is_shown_if_it_differs_from_the_question() -> None:
    assert followup_line("How wide?", "", (), "en") == followup_line("How wide?", "How wide?", (), "en") == ""
    assert "How wide is Aso?" in followup_line("How wide?", "How wide is Aso?", (), "en")
    line = followup_line("How wide?", "", FOLLOWED, "zh")
    assert line.startswith("视为") and line.endswith("When did \\*it\\* erupt? · Where is Aso?")
