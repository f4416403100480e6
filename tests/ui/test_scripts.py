import pytest

from rag.ui.scripts import run_script


def test_a_script_that_the_policy_does_not_name_is_refused() -> None:
    with pytest.raises(ValueError, match="policy"):
        run_script("alert(1)", "")
