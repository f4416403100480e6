from __future__ import annotations

import pytest

from rag.agent.citing.comparing.reading import Reading
from rag.agent.citing.comparing.support import Finding, judge

ASO = "Mount Aso erupted in 1953, and its crater is 24 kilometres wide."
TEAM = "The Panthers defense gave up just 308 points, while Denver led the league in interceptions with 24."
BILL = "After the war the exports of Norway increased by 20 percent, because Sweden lowered its taxes."
RIVER = "亚马逊河全长6400公里，流经巴西和秘鲁，是世界上流量最大的河流。"
TOWER = "1889年，埃菲尔铁塔在巴黎建成，此后参观人数增加了百分之二十。"


def found(statement: str, evidence: str) -> Finding:
    return judge(Reading(statement), Reading(evidence), Reading(evidence))


@pytest.mark.parametrize(
    ("statement", "evidence"),
    [
        ("In 1953 Mount Aso erupted.", ASO),
        ("The crater of Mount Aso is 24 km wide", ASO),
        ("The Panthers surrendered 308 points.", TEAM),
        ("Denver headed the league with twenty-four interceptions.", TEAM),
        ("Norway's exports grew by 20% after the war", BILL),
        ("Because Sweden reduced its taxes, Norwegian exports increased.", BILL),
        ("亚马逊河长6,400公里。", RIVER),
        ("世界流量最大的河流是亚马逊河，它经过秘鲁、巴西。", RIVER),
        ("埃菲尔铁塔是于1889年在巴黎修建完成的。", TOWER),
        ("参观的人数此后增长20%。", TOWER),
    ],
)
def test_said_in_other_words(statement: str, evidence: str) -> None:
    assert found(statement, evidence).verdict == "supported"


@pytest.mark.parametrize(
    ("statement", "evidence", "reason"),
    [
        ("Mount Aso erupted in 1963.", ASO, "numbers"),
        ("Its crater is 24 miles wide, and Mount Aso erupted in 1953.", ASO, "numbers"),
        ("Mount Aso never erupted in 1953.", ASO, "negation"),
        ("Mount Fuji erupted in 1953, and its crater is 24 kilometres wide.", ASO, "names"),
        ("The Denver defense gave up just 308 points.", TEAM, "names"),
        ("The Panthers defense gave up just 24 points.", TEAM, "numbers"),
        ("The exports of Norway decreased by 20 percent.", BILL, "direction"),
        ("Before the war the exports of Norway increased by 20 percent.", BILL, "direction"),
        ("亚马逊河全长6500公里，流经巴西和秘鲁。", RIVER, "numbers"),
        ("亚马逊河全长6400英里，流经巴西和秘鲁。", RIVER, "numbers"),
        ("亚马逊河不是世界上流量最大的河流。", RIVER, "negation"),
        ("亚马逊河是世界上流量最小的河流。", RIVER, "direction"),
        ("1889年，埃菲尔铁塔在伦敦建成。", TOWER, "exchanged"),
        ("此后参观人数减少了百分之二十。", TOWER, "direction"),
    ],
)
def test_one_thing_changed(statement: str, evidence: str, reason: str) -> None:
    finding = found(statement, evidence)
    assert finding.verdict != "supported"
    assert finding.reason == reason


def test_names_that_changed_places() -> None:
    assert found("Denver beat Carolina in the final.", "Carolina beat Denver in the final.").verdict == "unsupported"
    assert (
        found("Denver was beaten by Carolina in the final.", "Carolina beat Denver in the final.").verdict
        == "supported"
    )


def test_what_was_added_to_a_true_sentence_keeps_it_from_being_supported() -> None:
    added = "Mount Aso erupted in 1953, destroying several wooden temples nearby."
    assert found(added, ASO).verdict == "partly"


def test_an_acronym_and_its_words_are_one_name() -> None:
    assert found("The National Football League has 32 teams.", "The NFL has 32 teams.").verdict == "supported"


def test_across_languages_only_numbers_and_letters_are_compared() -> None:
    assert found("阿苏火山于1953年喷发。", ASO).verdict == "partly"
    assert found("阿苏火山于1963年喷发。", ASO) == Finding("unsupported", 0.0, "numbers")
    assert found("这座火山喷发过。", ASO).reason == "language"


@pytest.mark.parametrize(("statement", "evidence"), [("Penguins swim well.", ASO), ("企鹅善于游泳。", RIVER)])
def test_something_else_altogether(statement: str, evidence: str) -> None:
    assert found(statement, evidence).reason == "nothing_close"
