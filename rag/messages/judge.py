"""Sentences of judge mode: why a tree ended, and why rules gave a passage its score."""

MESSAGES: dict[str, tuple[str, str]] = {
    # Why no further level was begun
    "judge_complete": ("The question is answered.", "问题已得到回答。"),
    "judge_all_asked": ("All that passages lack was asked for.", "段落所缺的内容都已追问。"),
    "judge_budget_calls": (
        "The limit of model calls was reached; the answer is written from what was found by then.",
        "已达到模型调用次数的上限；答案依据此前找到的内容写成。",
    ),
    "judge_budget_tokens": (
        "The limit of tokens was reached; the answer is written from what was found by then.",
        "已达到 token 数的上限；答案依据此前找到的内容写成。",
    ),
    "judge_budget_seconds": (
        "The time for searching was up; the answer is written from what was found by then.",
        "检索时间已用完；答案依据此前找到的内容写成。",
    ),
    "judge_budget_searches": (
        "The limit of searches was reached; the answer is written from what was found by then.",
        "已达到检索次数的上限；答案依据此前找到的内容写成。",
    ),
    "judge_stopped_by_person": (
        "You ended the search; the answer is written from what was found by then.",
        "您结束了检索；答案依据此前找到的内容写成。",
    ),
    "judge_incomplete": (
        "No passage answers this by itself, and what they lack was not found; the answer is the best there is.",
        "没有段落能单独回答这个问题，所缺的内容也没有找到；这是目前最好的答案。",
    ),
    # Why rules gave a passage its score
    "judge_holds": ("Holds {percent} % of the question's words.", "包含问题中 {percent}% 的词。"),
    "judge_side": ("Is a page that the question compares.", "是问题所比较的页面之一。"),
    "judge_leads": (
        "Holds {percent} % of the question's words, and leads on to {name}.",
        "包含问题中 {percent}% 的词，并指向“{name}”。",
    ),
    "judge_beside": (
        "Holds {percent} % of the question's words, and leads on to nothing.",
        "包含问题中 {percent}% 的词，没有可以追问的线索。",
    ),
    # What became of a question, and what a passage lacks
    "tree_open": ("waiting", "等待"),
    "tree_running": ("searching", "检索中"),
    "tree_answered": ("answered", "已回答"),
    "tree_unanswered": ("not answered", "未回答"),
    "tree_failed": ("search failed", "检索失败"),
    "tree_linked": ("same as {number}", "与 {number} 相同"),
    "tree_refused": ("asked above: {number}", "上层已问：{number}"),
    "tree_cut": ("not asked any more", "未再追问"),
    "tree_lacks": ("Lacks", "还缺"),
    # What a step decided, for the trace
    "step_picked": ("Chose the questions to ask next.", "选择了接下来要问的问题。"),
    "step_judged": ("Judged each passage by itself.", "逐段评判。"),
    # Going on from an earlier tree
    "tree_unknown": (
        "The search that this should go on from is no longer kept. Ask the question again.",
        "要从中继续的检索已不再保存。请重新提问。",
    ),
}
