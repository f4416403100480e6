"""Words of the search tree, while it grows, under its answer, and where a person goes on from it."""

LABELS: dict[str, tuple[str, str]] = {
    "option_judge_each": ("Judge each passage in a call of its own", "每个段落单独调用评判"),
    "option_tree_order": ("Which questions come first", "先追问哪些问题"),
    "tree_order_breadth": ("Level by level", "逐层"),
    "tree_order_best": ("The most promising", "最有希望的"),
    "tree_way": (
        "{questions:question|questions} · {passages:passage|passages}",
        "{questions} 个问题 · {passages} 个段落",
    ),
    "tree_picture": ("The tree of questions", "问题树"),
    "tree_picture_hint": (
        "A box opens its question below. {signs}. Verdicts: 2 = answers, 1 = lacks something, 0 = beside the point.",
        "点击方框，在下方展开该问题。{signs}。评分：2 能回答，1 还缺内容，0 无关。",
    ),
    "tree_sign_linked": ("asked elsewhere", "别处已问"),
    "tree_sign_refused": ("asked above", "上层已问"),
    "tree_score_2": ("answers", "能回答"),
    "tree_score_1": ("lacks something", "还缺内容"),
    "tree_score_0": ("beside the point", "无关"),
    "tree_by_model": ("by the model", "由模型评判"),
    "tree_by_rules": ("by rules", "由规则评判"),
    "tree_by_person": ("your verdict", "您的评判"),
    "tree_completes": ("Asked for what “{title}” lacks", "为补全“{title}”而问"),
    "tree_answer": ("Answer", "答案"),
    "tree_no_passages": ("No passage was found for it.", "没有为它找到段落。"),
    "tree_state": ("Its whole state", "完整状态"),
    "tree_state_gone": (
        "The state of this question is no longer kept; what is shown above is stored with the answer.",
        "该问题的状态已不再保存；以上内容随答案保存。",
    ),
    "tree_score_out": ("Leave it out", "不用这一段"),
    # Going on from a question
    "tree_go_on": ("Go on from here", "从这里继续"),
    "tree_go_on_lead": (
        "Change what you like; what was asked below this question is asked anew, and this answer stays. "
        "Another question is searched for and judged from the start.",
        "可修改任意内容；此问题之下的追问会重新进行，当前答案保留。换了问题则重新检索和评判。",
    ),
    "tree_question": ("Question", "问题"),
    "tree_missing_for_1": ("What it lacks, for a 1", "还缺什么（评分为 1 时）"),
    "tree_go_on_do": ("Search on", "继续检索"),
    "tree_branch": ("Goes on from {earlier}: {changes}", "承接{earlier}：{changes}"),
    "tree_earlier": ("an earlier search", "之前的检索"),
    "tree_first": ("The first search", "最初的检索"),
    "tree_asked_anew": ("asked in other words", "换了问法"),
    "tree_without": ("{count:passage|passages} left out", "不用 {count} 段"),
    "tree_beside": ("Side by side", "并排比较"),
    "tree_beside_which": ("Beside which search", "与哪次检索并排"),
    "tree_as_svg": ("The picture as SVG", "下载图片（SVG）"),
    "tree_used": ("{calls:call|calls} · {ms}", "{calls} 次调用 · {ms}"),
}
