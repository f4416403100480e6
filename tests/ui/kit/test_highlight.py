from rag.ui.kit.passages import best_window, passage_markdown, term_spans


def marked(question: str, text: str) -> list[str]:
    return [text[start:end] for start, end in term_spans(question, text)]


def test_content_words_are_found_with_their_endings() -> None:
    text = "Deleted files stay; a file deletes nothing. Profile. The bilge."
    assert marked("How long does a deleted file stay in the bilge?", text) == [
        "Deleted",
        "files",
        "stay",
        "file",
        "deletes",
        "bilge",
    ]


def test_words_that_touch_are_one_mark() -> None:
    assert marked("异地 机房", "异地机房") == ["异地机房"]


def test_chinese_pairs_run_together_and_common_ones_are_left_out() -> None:
    assert marked("异地机房与主机房的距离至少是多少？", "异地机房与主机房的距离不小于 300 公里。") == [
        "异地机房",
        "主机房",
        "距离",
    ]


def test_signs_of_a_pattern_are_plain_text() -> None:
    assert marked("C++ (2.0) [x] 4.4.0", "C++ 4.4.0") == ["4", "4", "0"]


def test_a_window_begins_with_a_sentence_and_holds_the_words() -> None:
    text = "Nothing here. " * 40 + "The lamp was wound. " + "Nothing here. " * 40
    left, right = best_window(text, term_spans("wound lamp", text), 100)
    assert text[left:].startswith("The lamp was wound.")
    assert right - left <= 110
    assert best_window("short", [], 100) == (0, 5)


def test_several_spans_are_highlighted() -> None:
    text = "## The lamp\n- wound daily, wound nightly"
    shown = passage_markdown(text, *term_spans("wound lamp", text))
    assert shown.count(":yellow-background[wound]") == 2
    assert ":yellow-background[lamp]" in shown
