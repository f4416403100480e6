"""Sentences of rag/ingest/outcomes.py: what another look at a stored page has shown."""

MESSAGES: dict[str, tuple[str, str]] = {
    "not_modified": (
        "Its site says that it has not changed; nothing was sent again.",
        "网站表示内容没有变化，未重新传输。",
    ),
    "page_back": (
        "It is back on its site, with the text that is stored here.",
        "网页已恢复，内容与库中一致。",
    ),
    "page_removed": (
        "It was removed from the library in the meantime.",
        "该网页此间已从资料库中移除。",
    ),
    "page_gone": (
        "Its site says that it is no longer there (HTTP {status}). What is stored of it stays until you remove it.",
        "网站表示该网页已不存在（HTTP {status}）。库中内容会保留，直到您将其移除。",
    ),
    "page_lost": (
        "It could not be read {failures:time|times} in a row, so it counts as gone. What is stored of it stays "
        "until you remove it. Last: {why_en}",
        "已连续 {failures} 次无法读取，视为已消失。库中内容会保留，直到您将其移除。最近一次：{why_zh}",
    ),
    "page_unheard": (
        "It could not be reached, and so far no other page of this check could be either, so this does not count "
        "against it. What is stored of it stays. {why_en}",
        "无法连接到它，到目前为止这次检查的其他网页也都无法连接，因此不计为失败。库中内容保持不变。{why_zh}",
    ),
    "page_missed": (
        "It could not be read this time; what is stored of it stays. {why_en}",
        "这次无法读取，库中内容保持不变。{why_zh}",
    ),
}
