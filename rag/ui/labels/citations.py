"""Words about checked statements and their sources."""

LABELS: dict[str, tuple[str, str]] = {
    "checked_all_one": ("The statement is supported", "这句话有依据"),
    "checked_one": ("{supported} of 1 statement supported", "1 句中有 {supported} 句有依据"),
    "checked_many": ("{supported} of {count:statement|statements} supported", "{count} 句中有 {supported} 句有依据"),
    "checked_partly": ("{count} in part", "{count} 句仅部分有依据"),
    "doubt_unsupported": ("no source", "无依据"),
    "doubt_partly": ("in part", "部分依据"),
    "doubt_unsupported_tip": (
        "None of the passages says this. Check it before you rely on it.",
        "所有段落都没有这样说，使用前请自行核实。",
    ),
    "doubt_against_tip": (
        "A passage says otherwise: a number, a name or a denial differs.",
        "段落的说法与此不同：数字、名称或肯定否定不一致。",
    ),
    "doubt_partly_tip": (
        "The passage says a part of this, or it could not be compared word by word.",
        "段落只说明了一部分，或无法逐词核对。",
    ),
    "source_live": ("Open the page at this sentence", "在原网页中定位到这句话"),
    "source_newer": ("The page has a newer version", "该网页已有新版本"),
    "source_off_site": ("The page is gone from its site", "该网页已从其网站上消失"),
    "source_missing": ("The page is no longer in the library", "该网页已不在资料库中"),
}
