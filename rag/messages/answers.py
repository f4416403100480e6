"""Sentences of rag/runs and rag/graphs: how a run ended, and what each of its steps decided."""

MESSAGES: dict[str, tuple[str, str]] = {
    # Questions that cannot be asked
    "question_empty": ("Write a question first.", "请先输入问题。"),
    "question_long": (
        "The question has {characters:character|characters}; at most {limit} are possible. Ask it more briefly.",
        "问题有 {characters} 个字符，最多 {limit} 个。请写得简短一些。",
    ),
    "question_language": (
        "The question is in neither English nor Chinese: the search may miss passages, "
        "and quotes stay in the language of their page.",
        "问题既不是中文也不是英文：检索可能会有遗漏，引文保留网页原来的语言。",
    ),
    "small_talk": (
        "Hello! Ask me anything that your pages may answer, and I will quote what they say.",
        "您好！请就您的网页提问，我会引用其中的原文来回答。",
    ),
    "small_talk_thanks": (
        "You are welcome. Ask on whenever you like.",
        "不客气。还有问题请随时提出。",
    ),
    # How a run ended
    "nothing_found": (
        "Nothing in your pages matches this question.",
        "您的网页中没有与这个问题相符的内容。",
    ),
    "not_in_pages": (
        "Your pages do not hold the answer; the nearest passages are shown.",
        "您的网页中没有这个问题的答案；下面是最接近的段落。",
    ),
    "not_in_pages_language": (
        "Your pages do not seem to hold the answer; the question is in neither English nor Chinese, "
        "so try it in the language of your pages.",
        "您的网页中似乎没有答案；问题既不是中文也不是英文，请用网页的语言再问一次。",
    ),
    "best_found": (
        "No passage that clearly answers was found in {searches:search|searches}; this is the best there is.",
        "检索了 {searches} 次，没有找到明确的答案；以下是网页中最接近的内容。",
    ),
    "ungraded": (
        "The chat model could not judge which passages bear on the question; check the quotes before you rely on them.",
        "对话模型未能判断哪些段落与问题相关，请核对引文后再采用。",
    ),
    "in_doubt": (
        "Your pages may not hold the answer; check the quotes before you rely on them.",
        "您的网页中可能没有答案，请核对引文后再采用。",
    ),
    "not_named": (
        "Not named near these quotes: {names}. They may be about something else.",
        "引文附近没有提到 {names}，引文说的可能是别的内容。",
    ),
    "no_citations": (
        "No statement of this answer could be tied to a passage of your pages; check before you rely on it.",
        "这个回答中没有一句能对应到网页的段落，使用前请核实。",
    ),
    "answer_cut_off": (
        "The chat model's answer broke off; the passages that were found are shown.",
        "对话模型的回答中断了；下面是已找到的段落。",
    ),
    "answer_too_long": (
        "The chat model reached its limit before the answer was complete.",
        "对话模型在写完回答之前达到了长度上限。",
    ),
    "answer_empty": (
        "The chat model answered nothing; the passages that were found are shown.",
        "对话模型没有给出回答；下面是已找到的段落。",
    ),
    "quoted_model_failed": (
        "{why_en} These sentences are quoted from your pages instead.",
        "{why_zh}以下改为直接摘自您的网页的句子。",
    ),
    "call_limit": (
        "The limit of {limit:model call|model calls} for one question is reached.",
        "已达到每个问题最多 {limit} 次模型调用的上限。",
    ),
    "run_stopped": ("Stopped; the answer is incomplete.", "已停止，回答不完整。"),
    "run_too_long": (
        "This took too long and was stopped; the answer is incomplete.",
        "用时过长，已停止，回答不完整。",
    ),
    "run_failed": (
        "Something unexpected went wrong while answering; the log names it. Ask again.",
        "回答时出现了意外错误，日志中有记录。请再问一次。",
    ),
    "run_unknown": (
        "This answer is no longer in memory; ask the question again.",
        "这个回答已不在内存中，请重新提问。",
    ),
    # What a step decided, for the trace: `step_` and the step's decision
    "step_begin": ("Took the question.", "收到问题。"),
    "step_found": ("Searched your pages.", "检索了您的网页。"),
    "step_found_in_ledger": (
        "Found it in what the report above was written from; nothing was searched.",
        "在上面报告的证据中找到，没有新的检索。",
    ),
    "step_search": ("Searches your pages.", "检索您的网页。"),
    "step_search_rewritten": ("Searches again in other words.", "换一种说法再次检索。"),
    "step_search_not_small_talk": (
        "The model wanted to answer without looking; your pages are searched instead.",
        "模型想不检索就回答；改为检索您的网页。",
    ),
    "step_search_malformed_call": (
        "The model's search made no sense; the question itself is searched for.",
        "模型的检索请求无法使用；直接检索问题本身。",
    ),
    "step_search_call_limit": (
        "No model call is left to decide with; the question itself is searched for.",
        "没有剩余的模型调用用于判断；直接检索问题本身。",
    ),
    "step_answered_without_searching": ("Answered without searching.", "未检索，直接回答。"),
    "step_graded": ("Judged which passages bear on the question.", "判断了哪些段落与问题相关。"),
    "step_ungraded": (
        "The model's judgement of the passages could not be read; all are kept.",
        "无法读取模型对段落的判断；保留全部段落。",
    ),
    "step_rewritten": ("Put the question in other words.", "换了一种说法。"),
    "step_call_limit": ("No model call is left for this step.", "没有剩余的模型调用用于这一步。"),
    "step_nothing_left_to_try": ("No other words are left to try.", "没有其他说法可试。"),
    "step_answered": ("Answered from the passages.", "根据段落作答。"),
    "step_caveat": ("Answered from the passages, with a caveat.", "根据段落作答，但有所保留。"),
    "step_not_in_pages": ("The passages do not hold the answer.", "段落中没有答案。"),
    "step_nothing_found": ("Nothing was found to answer from.", "没有找到可用于作答的内容。"),
    "step_refused": ("The question cannot be asked.", "无法提出这个问题。"),
    "step_failed": ("This step failed.", "这一步出错了。"),
}
