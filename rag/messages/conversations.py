"""Sentences of conversations: what is said about them, budgets, and what became of their turns."""

MESSAGES: dict[str, tuple[str, str]] = {
    # Answers to questions about the conversation itself
    "recall_nothing": ("This is the beginning of our conversation.", "我们的对话刚刚开始。"),
    "recall_first": ("Your first question was: “{question}”", "您的第一个问题是：“{question}”"),
    "recall_last": ("Your last question was: “{question}”", "您的上一个问题是：“{question}”"),
    "recall_first_answer": (
        "You first asked “{question}”, and the answer was: {answer}",
        "您最先问的是“{question}”，当时的回答是：{answer}",
    ),
    "recall_last_answer": (
        "You last asked “{question}”, and the answer was: {answer}",
        "您上一个问题是“{question}”，当时的回答是：{answer}",
    ),
    "recall_all": ("So far we have spoken of:", "到目前为止我们谈过："),
    "remembered": (
        "I will remember this in all your conversations; Settings lists it: “{note}”",
        "我会在您的所有对话中记住（可在“设置”页查看）：“{note}”",
    ),
    "remembered_full": (
        "There is room for {most:note|notes}. Forget one on the Settings page first.",
        "最多可以记住 {most} 条。请先在“设置”页忘记一条。",
    ),
    # Budgets
    "too_many_answers": (
        "{most} of your questions are being answered, which is as many as one person may have at a time. Wait for one, "
        "or stop one.",
        "您有 {most} 个问题正在回答，已达每人上限。请等待其中一个完成，或停止一个。",
    ),
    "token_limit": (
        "The limit of {limit:token|tokens} for one question is reached.",
        "已达到每个问题 {limit} 个 token 的上限。",
    ),
    "budget_seconds": (
        "The limit of {seconds:second|seconds} for one question is reached; this is what there was by then.",
        "已达到每个问题 {seconds} 秒的上限，以下是到那时为止的内容。",
    ),
    "quoted_call_limit": (
        "The limit of {limit:model call|model calls} was reached before an answer was written; "
        "these are the sentences of your pages that fit best.",
        "在写出回答之前已达到 {limit} 次模型调用的上限；以下是网页中最相符的句子。",
    ),
    "quoted_token_limit": (
        "The limit of {limit:token|tokens} was reached before an answer was written; "
        "these are the sentences of your pages that fit best.",
        "在写出回答之前已达到 {limit} 个 token 的上限；以下是网页中最相符的句子。",
    ),
    "quoted_budget_seconds": (
        "The limit of {seconds:second|seconds} was reached before an answer was written; "
        "these are the sentences of your pages that fit best.",
        "在写出回答之前已达到 {seconds} 秒的上限；以下是网页中最相符的句子。",
    ),
    "budget_best": (
        "The budget for this question was spent after {searches:search|searches}; this is the best there is by then.",
        "检索 {searches} 次之后，这个问题的预算已用完；以下是到那时为止最接近的内容。",
    ),
    # Conversations
    "conversation_unknown": ("This conversation is not there any more.", "这个对话已不存在。"),
    "turn_unknown": ("This answer is not there any more.", "这个回答已不存在。"),
    "turn_running": (
        "The last question of this conversation is still being answered; wait for it or stop it first.",
        "这个对话的上一个问题还在回答中，请等待或先停止。",
    ),
    "turn_not_waiting": (
        "This answer does not wait for a reply any more.",
        "这个回答已不再等待回复。",
    ),
    "turn_interrupted": (
        "The program ended while this was being answered; it is not finished. Ask again to have it answered.",
        "回答时程序中断了，这个回答没有完成。请重新提问。",
    ),
    "export_format": (
        "Conversations are exported as md, html or json, not as {kind}.",
        "对话可导出为 md、html 或 json，不支持 {kind}。",
    ),
    "checkpoint_package": (
        "CHECKPOINT_URL names a Postgres database, for which a package is missing: "
        "pip install langgraph-checkpoint-postgres psycopg[binary]",
        "CHECKPOINT_URL 指向 Postgres 数据库，但缺少软件包：pip install langgraph-checkpoint-postgres psycopg[binary]",
    ),
    "checkpoint_failed": (
        "The conversation could not be written to {where}: {detail}",
        "无法将对话写入 {where}：{detail}",
    ),
    # Exports
    "export_question": ("Question", "问题"),
    "export_standalone": ("Understood as", "理解为"),
    "export_sources": ("Sources", "出处"),
    "export_tools": ("Tools that were called", "调用的工具"),
    "export_gaps": ("What is missing", "还缺什么"),
    "export_struck": ("Struck from the report", "从报告中删去"),
    "export_ledger": ("All that was read", "读过的全部段落"),
    "export_tree": ("Search tree", "检索树"),
    "export_partly": ("borne out in part", "部分有依据"),
    "export_unsupported": ("not found in the pages", "在网页中未找到"),
    "export_aside": ("beside the question", "与问题无关"),
    "export_checked": (
        "Supported by the pages, as a model checked: {supported} of {count:statement|statements}.",
        "{count} 句中有 {supported} 句在网页中有依据（由模型核对）。",
    ),
    "export_found": (
        "Found in the pages by words and numbers: {supported} of {count:statement|statements}.",
        "{count} 句中有 {supported} 句按词语和数字可在网页中找到。",
    ),
    "export_unfinished": ("Not finished", "未完成"),
    "export_made": ("Exported on {date}", "导出于 {date}"),
    # Follow-up questions that need no model
    "ask_heading": ("What does the page say about “{heading}”?", "关于“{heading}”，页面说了什么？"),
    # Steps of a conversation, for the trace
    "step_condensed": ("Completed the follow-up from the conversation.", "根据对话补全了追问。"),
    "step_followed": ("Searches with the words of the earlier questions too.", "检索时也用上之前问题的词语。"),
    "step_stands_alone": ("The question stands by itself.", "问题本身已完整。"),
    "step_corrected": ("Took the question as it was corrected.", "采用了更正后的问题。"),
    "step_search_condensed": ("Searches for the completed question.", "检索补全后的问题。"),
    "step_token_limit": ("No tokens are left for this step.", "没有剩余的 token 用于这一步。"),
}
