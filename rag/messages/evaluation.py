"""Sentences of rag/evaluation: sets of questions, runs over them, comparisons, and the gate."""

MESSAGES: dict[str, tuple[str, str]] = {
    "set_row_broken": (
        "Row {line} of {name} is no question: it needs at least a question, or RAGAS's user_input; lists are JSON.",
        "{name} 第 {line} 行不是有效的问题：至少要有 question（或 RAGAS 的 user_input）；列表须为 JSON。",
    ),
    "set_row_twice": (
        "Row {line} of {name} has the id {id}, as an earlier one does.",
        "{name} 第 {line} 行的 id {id} 与前面的重复。",
    ),
    "set_unknown": ("This set is not there any more.", "这个题集已不存在。"),
    "set_unnamed": ("Give the set a name.", "请给题集起一个名称。"),
    "set_nowhere": (
        "{name} is neither a file nor a set of this library.",
        "{name} 既不是文件，也不是这个资料库的题集。",
    ),
    "label_unknown": ("This item is not there any more.", "这一条已不存在。"),
    "evaluation_needs_model": (
        "This needs a chat model: connect one on the Settings page.",
        "这需要对话模型，请在“设置”页面连接。",
    ),
    # Questions made of pages
    "make_heading": ("What does “{title}” say about “{heading}”?", "“{title}”关于“{heading}”说了什么？"),
    "make_number": ("Which number belongs in the gap? {sentence}", "空格处应是哪个数字？{sentence}"),
    "make_name": ("Which name belongs in the gap? {sentence}", "空格处应是哪个名称？{sentence}"),
    "make_bridge": (
        "What do “{title}” and “{other}” each say about {name}?",
        "“{title}”和“{other}”各自怎样说到{name}？",
    ),
    # Runs
    "evaluation_unknown": ("This evaluation is not there any more.", "这次评测已不存在。"),
    "evaluation_nowhere": (
        "{name} is neither an evaluation of this library nor a file of one.",
        "{name} 既不是这个资料库的评测，也不是评测结果文件。",
    ),
    "evaluation_empty": (
        "There is nothing to ask: the set has no approved questions.",
        "没有可提的问题：题集中没有已通过的题目。",
    ),
    "evaluation_broke": (
        "Something went wrong, and the evaluation waits; what is done is kept. Resume it to go on.",
        "出现意外，评测已暂停；已完成的部分都已保存。点击继续即可接着评测。",
    ),
    "evaluation_no_model": (
        "The chat model that was connected in a browser is not kept. Connect it again, then resume.",
        "在浏览器中连接的对话模型不会保存。请重新连接后再继续。",
    ),
    "compare_sides": ("Choose at least two runs to compare, and at most {most}.", "请选择二到 {most} 次评测进行比较。"),
    # The gate
    "gate_metric": (
        "{name} is no metric that a gate can hold; these are: {known}.",
        "{name} 不是可设门限的指标；可用的有：{known}。",
    ),
    "gate_margin": (
        "{name}:{value} does not say how much worse {name} may be, such as recall@4000:-0.01 or calls:+0.",
        "{name}:{value} 没有说明 {name} 最多可变差多少，例如 recall@4000:-0.01 或 calls:+0。",
    ),
    "gate_unjudged": (
        "No question of both runs could be judged by {name}.",
        "两次评测中没有题目能用 {name} 评判。",
    ),
    "gate_no_baseline": ("A gate needs a baseline: --baseline RUN.", "门限需要基准：--baseline RUN。"),
}
