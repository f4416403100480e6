"""Sentences of rag/retrieval: what became of each passage that a search considered."""

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
}
