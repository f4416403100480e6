"""Sentences of research: how it was planned, why it went on or ended, what is missing from its report."""

MESSAGES: dict[str, tuple[str, str]] = {
    # Why the search ended; those but the first two are caveats of the report
    "research_complete": ("Everything that the question asks for was found.", "问题所问的内容都已找到。"),
    "research_plan_done": ("All steps of the plan are done.", "计划中的步骤都已完成。"),
    "research_stagnant": (
        "Two rounds of searching found nothing new, so the search ended there.",
        "连续两轮检索没有新的发现，检索到此为止。",
    ),
    "research_budget_calls": (
        "The limit of model calls was reached; the report is written from what was found by then.",
        "已达到模型调用次数的上限；报告依据此前找到的内容写成。",
    ),
    "research_budget_tokens": (
        "The limit of tokens was reached; the report is written from what was found by then.",
        "已达到 token 数的上限；报告依据此前找到的内容写成。",
    ),
    "research_budget_seconds": (
        "The time for searching was up; the report is written from what was found by then.",
        "检索时间已用完；报告依据此前找到的内容写成。",
    ),
    "research_budget_searches": (
        "The limit of searches was reached; the report is written from what was found by then.",
        "已达到检索次数的上限；报告依据此前找到的内容写成。",
    ),
    "research_budget_rounds": (
        "The limit of rounds was reached; the report is written from what was found by then.",
        "已达到检索轮数的上限；报告依据此前找到的内容写成。",
    ),
    "research_stopped_by_person": (
        "You ended the search; the report is written from what was found by then.",
        "您结束了检索；报告依据此前找到的内容写成。",
    ),
    "research_struck": (
        "{count:sentence was|sentences were} struck from the report because no passage bears them out.",
        "报告中有 {count} 句话没有段落支持，已删去。",
    ),
    # How it went on
    "research_by_plan": ("Goes on with the plan.", "按计划继续。"),
    "research_new_name": ("What was found gives a name to ask with.", "找到的内容给出了可以追问的名称。"),
    "research_no_new_name": ("What was found gives nothing further to ask with.", "找到的内容没有可以继续追问的线索。"),
    "research_web_too": (
        "The web was allowed, and rules cannot tell what the library lacks.",
        "已允许使用网络，而规则无法判断资料库缺少什么。",
    ),
    "research_to_web": ("The library does not seem to hold the answer.", "资料库中似乎没有答案。"),
    "research_model_slow": (
        "The chat model took longer than the search may take; rules took its place.",
        "对话模型用时超过检索时限，改由规则处理。",
    ),
    "research_web_unset": (
        "No web search is set up; the library was searched instead.",
        "没有设置网络搜索；改为检索网页库。",
    ),
    # What is missing
    "research_gap_empty": ("Nothing in your pages matches it.", "您的网页中没有相符的内容。"),
    "research_gap_skipped": ("Skipped by you.", "已由您跳过。"),
    "research_web_refused": (
        "The web was not asked, as you wished; only the library was searched.",
        "按您的选择没有查询网络，只检索了资料库。",
    ),
    "research_gap_open": ("Not searched for before the search ended.", "检索结束前没有查到这一步。"),
    # What a step decided, for the trace
    "step_planned": ("Planned the steps.", "规划了步骤。"),
    "step_approved": ("You approved the plan.", "您确认了计划。"),
    "step_asked_leave": ("Asks you before the question goes to the web.", "将问题发往网络之前先征求您的同意。"),
    "step_left": ("You let the question go to the web.", "您允许将问题发往网络。"),
    "step_stayed": ("You kept the question to the library.", "您选择只用资料库。"),
    "step_dispatched": ("Began the steps that could begin.", "开始了可以进行的步骤。"),
    "step_step_done": ("Searched and read for one step.", "完成了一步的检索和阅读。"),
    "step_step_empty": ("Found nothing for one step.", "有一步没有找到内容。"),
    "step_step_failed": ("One step failed; the others go on.", "有一步失败了，其他步骤继续。"),
    "step_stopped": ("Ended the search.", "结束了检索。"),
    "step_chose_continue": ("Goes on with the steps left.", "继续剩下的步骤。"),
    "step_chose_revise": ("Added steps to the plan.", "在计划中增加了步骤。"),
    "step_chose_finish": ("Has enough to write.", "已有足够的内容，开始撰写。"),
    "step_written": ("Wrote the report.", "写出了报告。"),
    "step_verified": ("Held every sentence against the passages.", "逐句对照段落核对。"),
}
