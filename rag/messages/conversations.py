"""Sentences of conversations: what is said about them, which way a message goes, budgets, what became of turns."""

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
    # Why a message goes its way
    "route_only_addresses": (
        "The message holds addresses or files and nothing else.",
        "消息中只有网址或文件，没有其他内容。",
    ),
    "route_chosen_before": ("You chose this for such a message before.", "您曾为类似的消息选择过这种方式。"),
    "route_no_words": ("The message holds no words.", "消息中没有文字。"),
    "route_expression": ("The whole message is a sum: {expression}", "整条消息是一个算式：{expression}"),
    "route_conversation": ("It is about the conversation, not about pages.", "与对话有关，与网页内容无关。"),
    "route_model": ("The chat model says: {why}", "聊天模型的判断：{why}"),
    "route_person": ("You chose this.", "由您选择。"),
    "route_likely": ("Messages like this one usually mean that.", "类似的消息通常是这个意思。"),
    "route_ask": ("It reads as a question that pages may answer.", "看起来是网页可以回答的问题。"),
    "route_save": ("It asks to keep what it holds: {words}", "要求保存其中的内容：{words}"),
    "route_save_then_ask": ("It holds an address and asks something of it: {words}", "包含网址，并就其提问：{words}"),
    "route_summarise": ("It asks for a summary: {words}", "要求概括：{words}"),
    "route_what_changed": ("It asks what is new in the library: {words}", "询问资料库的变化：{words}"),
    "route_statistics": ("It asks about the library itself: {words}", "询问资料库本身：{words}"),
    "route_calculate": ("It asks for a calculation: {words}", "要求计算：{words}"),
    "route_date": ("It asks for a date: {words}", "询问日期：{words}"),
    "route_web": ("It asks for a search of the open web: {words}", "要求搜索公开网络：{words}"),
    "route_small_talk": (
        "It is about the conversation, not about pages: {words}",
        "与对话有关，与网页内容无关：{words}",
    ),
    "route_unknown": ("It asks for something that pages do not hold: {words}", "要求的事情与网页内容无关：{words}"),
    "route_unknown_name": ("There is no such way for a message: {route}", "没有这种处理方式：{route}"),
    # Saving what came with a message
    "saving_done": ("Saved {saved} of {all} sources.", "已保存 {all} 个来源中的 {saved} 个。"),
    "saving_asks": (
        "Nothing was saved yet: the message holds many addresses. Confirm above that all of them are meant.",
        "尚未保存：消息中的网址较多。请在上方确认是否全部保存。",
    ),
}
