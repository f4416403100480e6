"""Words about checked statements and their sources."""

LABELS: dict[str, tuple[str, str]] = {
    "checked": ("{supported} of {count:statement|statements} supported", "{count} 句中有 {supported} 句有依据"),
    "found": (
        "{supported} of {count:statement|statements} found in the passages",
        "{count} 句中有 {supported} 句可在段落中找到",
    ),
    "checked_partly": ("{count} in part", "{count} 句仅部分如此"),
    "checked_aside": ("{count} beside the question", "{count} 句与问题无关"),
    "checked_by_model": ("checked by the chat model", "由对话模型核对"),
    "checked_by_local": ("checked by a local model", "由本地模型核对"),
    "checked_by_rules": ("compared by words and numbers only", "仅按词语和数字比对"),
    "doubt_unsupported": ("no source", "无依据"),
    "doubt_not_found": ("not found", "未找到"),
    "doubt_partly": ("in part", "部分依据"),
    "doubt_aside": ("beside the question", "与问题无关"),
    "doubt_unsupported_tip": (
        "The model that checked found no passage that says this. Check it before you rely on it.",
        "核对的模型未发现有段落这样说，使用前请自行核实。",
    ),
    "doubt_not_found_tip": (
        "Not found in the source. Words were compared, not meaning: check it before you rely on it.",
        "在来源中未找到。仅比对了词语，未判断含义，使用前请自行核实。",
    ),
    "doubt_partly_tip": ("The passages say only a part of this.", "段落只说明了一部分。"),
    "doubt_words_tip": ("Only a part of its words was found in the source.", "在来源中只找到其中部分词语。"),
    "doubt_numbers_tip": ("A number in it was not found in the source.", "其中有数字在来源中未找到。"),
    "doubt_negation_tip": (
        "A denial stands in only one of the two, this or its source.",
        "这句话与来源之中，只有一方含有否定。",
    ),
    "doubt_clause_tip": (
        "A part of it was not found in the source, or is said there of something else.",
        "其中一部分在来源中未找到，或来源说的是别的对象。",
    ),
    "doubt_language_tip": (
        "The source is in another language, which words cannot be compared with.",
        "来源使用另一种语言，无法逐词比对。",
    ),
    "doubt_aside_tip": ("It does not bear on the question.", "这句话与问题无关。"),
    "source_live": ("Open the page at this sentence", "在原网页中定位到这句话"),
    "source_newer": ("The page has a newer version", "该网页已有新版本"),
    "source_off_site": ("The page is gone from its site", "该网页已从其网站上消失"),
    "source_beyond": ("From the web, not in the library", "来自网络，不在资料库中"),
    "source_missing": ("The page is no longer in the library", "该网页已不在资料库中"),
    "source_place": ("{place} of {count}", "{place} / {count}"),
    "source_before": ("Previous", "上一条"),
    "source_after": ("Next", "下一条"),
    "source_close": ("Close", "关闭"),
    "source_version": ("Version {number}, read {when}", "第 {number} 版，读取于 {when}"),
    "source_version_past": (
        "Version {number}, read {when}, in force until {until}",
        "第 {number} 版，读取于 {when}，沿用至 {until}",
    ),
    "source_library": ("Open in the library", "在资料库中打开"),
}
