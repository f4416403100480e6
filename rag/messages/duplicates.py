"""Sentences of rag/ingest/duplicates.py and outcomes.py: what a page that comes is to those that are stored."""

MESSAGES: dict[str, tuple[str, str]] = {
    "same_text": (
        "Its text is word for word that of “{title}” ({other}), which is already here.",
        "正文与已收录的“{title}”（{other}）完全相同。",
    ),
    "near_text": (
        "Its text is nearly that of “{title}” ({other}), which is already here: about {percent} % of it is the same.",
        "正文与已收录的“{title}”（{other}）几乎相同：约 {percent}% 一致。",
    ),
    "alias_address": (
        "This address leads to “{title}”, which is already here as {other}.",
        "这个网址指向已收录的“{title}”（{other}）。",
    ),
    "moved_address": (
        "This address has moved for good to “{title}”, which is already here as {other}.",
        "这个网址已永久转移到已收录的“{title}”（{other}）。",
    ),
    "canonical_alias": (
        "The page says of itself that its proper address is that of “{title}”, which is already here as {other}.",
        "该网页自称的规范网址属于已收录的“{title}”（{other}）。",
    ),
    "canonical_first": (
        "Added “{title}” ({chunks:passage|passages}) under its own address. {other}, which came first and names "
        "that address, leads to it now.",
        "已将“{title}”（{chunks} 个段落）收录在其规范网址下。先前收录的 {other} 自称属于该网址，现在指向它。",
    ),
    "twin_https": (
        "The same page as “{title}”, which is already here as {other}: one address begins with http, the other with "
        "https.",
        "与已收录的“{title}”（{other}）是同一网页：一个网址以 http 开头，另一个以 https 开头。",
    ),
    "twin_www": (
        "The same page as “{title}”, which is already here as {other}: one address has www, the other has not.",
        "与已收录的“{title}”（{other}）是同一网页：一个网址带 www，另一个不带。",
    ),
    "twin_both": (
        "The same page as “{title}”, which is already here as {other}: the addresses differ in https and www alone.",
        "与已收录的“{title}”（{other}）是同一网页：两个网址只在 https 和 www 上不同。",
    ),
    "now_elsewhere": (
        "Its address now leads to “{title}” ({other}), which is already here, so it counts as gone. What is stored of "
        "it stays until you remove it.",
        "它的网址现在指向已收录的“{title}”（{other}），因此视为已消失。库中内容会保留，直到您将其移除。",
    ),
    "now_same_text": (
        "In its place its site now shows, word for word, the text of “{title}” ({other}), which is already here. "
        "What is stored of it was kept.",
        "网站上它的正文现在与已收录的“{title}”（{other}）完全相同。库中原有内容已保留。",
    ),
    "now_near_text": (
        "In its place its site now shows nearly the text of “{title}” ({other}), which is already here: about "
        "{percent} % is the same. What is stored of it was kept.",
        "网站上它的正文现在与已收录的“{title}”（{other}）几乎相同：约 {percent}% 一致。库中原有内容已保留。",
    ),
    "left_alone": (
        "Not taken in, as you chose.",
        "已按您的选择跳过。",
    ),
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
