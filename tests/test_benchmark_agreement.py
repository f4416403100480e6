"""The benchmark of agreement: its counts, and the connected model asked as the app asks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import agreement
from tests.support.chat_server import ChatServer, rules

PAGE = "The harbour bridge was opened in 1932. It carries eight lanes of traffic."
CASES: list[dict[str, Any]] = [
    {"id": str(n), "group": str(n), "passages": [PAGE], "text": text, "bad": bad, "spans": None}
    for n, (text, bad) in enumerate([("It carries lanes of traffic.", 0), ("Penguins guard it since 1985.", 1)] * 4)
]


def test_agreement_with_people_worked_by_hand() -> None:
    """Of ten units four are labelled wrong; the checker finds two of them, and flags one right one."""
    people, said = [1] * 4 + [0] * 6, [1, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    kappa, right, wrong = agreement.agreement(
        [(str(n), *pair) for n, pair in enumerate(zip(people, said, strict=True))]
    )
    assert np.isclose(kappa.value, (0.7 - 0.54) / (1 - 0.54))
    assert np.isclose([right.value, wrong.value], [2 * 5 / (6 + 7), 2 * 2 / (4 + 3)]).all()
    assert kappa.low < kappa.value < kappa.high


@pytest.mark.parametrize("fails", [False, True])
def test_a_row_for_each_checker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fails: bool
) -> None:
    """If the model answers nothing, no case is judged, instead of being judged by the rules."""
    (tmp_path / "statements").mkdir()
    (tmp_path / "statements" / "tiny.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    with ChatServer([] if fails else rules) as server:
        for name, value in {"LLM_BASE_URL": server.base_url, "LLM_MODEL": "test", "LLM_API_KEY": "none"}.items():
            monkeypatch.setenv(name, value)
        assert agreement.main(["--data", str(tmp_path)]) == 0
        assert server.requests
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    counts = {line[1]: line[2] for line in lines[2:] if line[0] == "| tiny"}
    assert counts["rules"] == "8"
    assert counts[agreement.NO_LOCAL] == "0"
    (model,) = (n for who, n in counts.items() if "test" in who)
    assert model == ("0" if fails else "8")
