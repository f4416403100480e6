"""Sentences of rag/tools and rag/graphs/tools."""

MESSAGES: dict[str, tuple[str, str]] = {
    # The calculator
    "expression_unreadable": (
        "That cannot be read as arithmetic; write it such as 15% * 240 or 5 km in miles.",
        "无法将其读作算式；请写成 15% * 240 或 5 公里是多少英里 这样的形式。",
    ),
    "expression_long": (
        "The expression is too long; at most {limit} characters are worked out.",
        "算式太长；最多计算 {limit} 个字符。",
    ),
    "expression_deep": ("The expression has too many parentheses within each other.", "算式的括号嵌套太深。"),
    "expression_large": (
        "The result is too large or too small to be worked out.",
        "结果太大或太小，无法计算。",
    ),
    "expression_by_zero": ("That would divide by zero, which has no result.", "除数为零，没有结果。"),
    "expression_undefined": ("That has no result among the real numbers.", "该算式没有实数结果。"),
    "expression_units": (
        "The units of the expression do not fit together.",
        "算式中的单位不相配。",
    ),
}
