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
}
