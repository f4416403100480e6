"""Sentences of summary mode: what a summary covers, and why there is none."""

MESSAGES: dict[str, tuple[str, str]] = {
    "summary_all": ("Tells of all there is: {pages:page|pages}.", "涵盖全部 {pages} 个网页。"),
    "summary_some": (
        "Tells of {pages} of {of:page|pages}; the others are not in it. Name some, or choose a site, for more.",
        "涵盖 {of} 个网页中的 {pages} 个，其余网页未包括在内。可以点名网页或选择网站以了解更多。",
    ),
    "summary_changes": (
        "New, changed or found gone since {since}: {count:page|pages}.",
        "自 {since} 以来新增、变更或消失的网页：{count} 个。",
    ),
    "summary_part": (
        "{percent} % of the text was read; the rest is not in this summary.",
        "只阅读了正文的 {percent}%，其余部分未包括在摘要中。",
    ),
    "summary_sections": (
        "Tells of the {parts} largest parts of the page; {aside} more sections are not in it.",
        "涵盖该网页最大的 {parts} 个部分，另有 {aside} 个小节未包括在内。",
    ),
    "summary_struck": (
        "Left out: {count:sentence|sentences} that the pages do not bear out.",
        "略去了 {count} 句没有网页支持的话。",
    ),
    "summary_kept": (
        "Taken from the summary of this page that was made on {when}; its text is still the same.{reach_en}",
        "取自 {when} 生成的该网页摘要，正文此后没有变化。{reach_zh}",
    ),
    "summary_nothing": (
        "There is nothing to summarise: no page that was chosen holds sentences.",
        "没有可以总结的内容：所选范围内没有含句子的网页。",
    ),
    "summary_unchanged": (
        "Nothing was added, changed or found gone since {since}.",
        "自 {since} 以来没有新增、变更或消失的网页。",
    ),
    # Headings
    "summary_new": ("New", "新增"),
    "summary_changed": ("Changed", "有变更"),
    "summary_shortened": ("Shortened: where text was taken out", "有删节（删节处的现有文字）"),
    "summary_gone": ("No longer on its site", "网站上已不存在"),
    # What a step decided, for the trace
    "step_summary_read": ("Read what is to be summarised.", "阅读了要总结的内容。"),
    "step_summary_kept": ("Found a summary of this very text.", "找到了这份正文的现有摘要。"),
    "step_summary_written": ("Wrote the summary.", "写出了摘要。"),
    "step_summary_noted": ("Noted what some sections say.", "记下了若干部分的内容。"),
}
