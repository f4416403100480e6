"""Sentences of the one box: which way a message goes and why, what was saved of it."""

MESSAGES: dict[str, tuple[str, str]] = {
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
