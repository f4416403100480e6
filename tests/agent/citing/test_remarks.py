from __future__ import annotations

import pytest

from rag.agent.citing.remarks import declines, is_on_sources, is_remark

ON_SOURCES = [
    "The passages do not mention its height.",
    "The pages don't say when it opened.",
    "None of the sources cover this.",
    "Neither passage mentions it.",
    "The documents make no mention of it.",
    "Nothing in the sources answers this.",
    "The answer is not in the pages.",
    "This is not covered in the passages provided.",
    "Based on the passages, it is impossible to say.",
    "I could not find that.",
    "I do not have enough information.",
    "段落中没有提到它的高度。",
    "资料未说明价格。",
    "这些来源都没有提及游泳池。",
    "网页里没有相关信息。",
    "根据提供的资料，无法确定。",
    "抱歉，我无法找到答案。",
    "无法根据这些段落回答。",
    "不能从网页中得知。",
]
WITHOUT_SUBJECT = [
    "There is no information about this.",
    "Not mentioned.",
    "No information.",
    "No information on prices was found.",
    "没有找到相关信息。",
    "无法回答该问题。",
    "未提及。",
]
DENIALS = [
    "No, it does not include breakfast.",
    "They do not give refunds.",
    "The plan doesn't cover dental care.",
    "The hotel does not offer a pool.",
    "We do not ship abroad.",
    "We cannot find a cure yet.",
    "There is no information desk.",
    "There is no answer key.",
    "科学家无法从骨骼判断其年代。",
    "房价不包含早餐。",
    "该方案不涉及牙科。",
    "科学家无法确定其年代。",
    "他们找不到水源。",
    "考古学家没有找到墓葬。",
    "酒店没有游泳池。",
]


@pytest.mark.parametrize("text", ON_SOURCES)
def test_what_speaks_of_the_sources(text: str) -> None:
    assert is_on_sources(text)
    assert is_remark(text)
    assert declines(text)


@pytest.mark.parametrize("text", WITHOUT_SUBJECT)
def test_a_refusal_needs_no_subject(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", DENIALS)
def test_a_denial_is_no_refusal(text: str) -> None:
    assert not is_on_sources(text)
    assert not declines(text)


@pytest.mark.parametrize("text", ["I hope this helps.", "Please let me know.", "请告诉我更多。", "希望对您有帮助。"])
def test_courtesies(text: str) -> None:
    assert is_remark(text)
    assert not declines(text)


@pytest.mark.parametrize("text", ["We will open in Berlin in 2027.", "希望小学建于1990年。", "We found gold."])
def test_openings_alone_make_no_remark(text: str) -> None:
    assert not is_remark(text)
