"""Sentences of rag/retrieval and rag/reasoning/hops: what was searched for and why, and what became of each passage."""

MESSAGES: dict[str, tuple[str, str]] = {
    "candidate_kept": ("Handed on.", "已采用。"),
    "candidate_kept_with": (
        "Handed on, together with {count:neighbour|neighbours}.",
        "已采用，并与 {count} 个相邻段落合并。",
    ),
    "candidate_merged": (
        "Put together with passage {place}, its neighbour in the page.",
        "与相邻的第 {place} 段合并。",
    ),
    "candidate_same_text": ("Says the same as passage {place}.", "与第 {place} 段内容相同。"),
    "candidate_says_less": (
        "Left out: for its length it adds less to the question than what was chosen.",
        "略去：就篇幅而言，对问题的补充少于已采用的内容。",
    ),
    "candidate_repeats": (
        "Left out for variety: {percent} % like passage {place}.",
        "为避免重复而略去：与第 {place} 段相似 {percent} %。",
    ),
    "candidate_repeats_other": (
        "Left out for variety: {percent} % like another passage.",
        "为避免重复而略去：与另一段落相似 {percent} %。",
    ),
    "candidate_below": ("Ranks below those that were kept.", "排名低于已采用的段落。"),
    "candidate_below_near": (
        "Ranks below those that were kept; {percent} % like passage {place}.",
        "排名低于已采用的段落；与第 {place} 段相似 {percent} %。",
    ),
    # Why `auto` picked what it picked
    "auto_exact": (
        "“{words}” is to be found as it stands, so the keywords weigh more.",
        "问题中的“{words}”需要原样匹配，因此提高了关键词的权重。",
    ),
    "auto_concept": (
        "The question is about an idea (“{word}”), so the meaning weighs more.",
        "问题问的是概念（“{word}”），因此提高了语义的权重。",
    ),
    "auto_facets": (
        "The question asks {parts} things, so several searches were made.",
        "问题包含 {parts} 个方面，因此分别进行了检索。",
    ),
    "auto_plain": (
        "Nothing about the question calls for a particular search; the usual one was made.",
        "问题没有特别之处，使用了默认的检索方式。",
    ),
    "auto_exact_model": (
        "{model} judged that the question's own words matter, so the keywords weigh more.",
        "{model} 判断问题的原词很重要，因此提高了关键词的权重。",
    ),
    "auto_concept_model": (
        "{model} judged that the question is about an idea, so the meaning weighs more.",
        "{model} 判断问题问的是概念，因此提高了语义的权重。",
    ),
    "auto_facets_model": (
        "{model} judged that the question has several parts, so several searches were made.",
        "{model} 判断问题包含多个方面，因此分别进行了检索。",
    ),
    # Sub-questions
    "plan_question": ("The question as it stands.", "按原问题检索。"),
    "plan_side": ("The question sets {name} beside something else.", "问题将“{name}”与其他事物并列。"),
    "plan_hop": ("What was found leads on to {name}.", "已找到的内容指向“{name}”。"),
    # Reranking
    "rerank_with": (
        "{model} read {reached} of {of:candidate|candidates}.",
        "{model} 重读了 {of} 个候选段落中的 {reached} 个。",
    ),
    "rerank_without_weights": (
        "No model is set to read the candidates again: their scores order them.",
        "没有设置重读候选段落的模型：按得分排序。",
    ),
    # Across languages
    "translated_en": ("Also searched in English for “{query}”.", "还用英文检索了“{query}”。"),
    "translated_zh": ("Also searched in Chinese for “{query}”.", "还用中文检索了“{query}”。"),
    # The part of the library that the question names
    "scope_named": ("Searched only where the question says: {names}.", "仅在问题指定的范围内检索：{names}。"),
    "scope_saved": ("Searched in the pages that came with the message.", "在随消息保存的网页中检索。"),
    "scope_empty": (
        "Nothing was found where the question says ({names}), so all pages were searched.",
        "在问题指定的范围（{names}）内没有找到内容，因此检索了全部网页。",
    ),
}
