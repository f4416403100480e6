"""Sentences of rag/tools and rag/graphs/tools."""

MESSAGES: dict[str, tuple[str, str]] = {
    # Their names
    "tool_retrieve": ("Search of the pages", "检索网页"),
    "tool_calculator": ("Calculator", "计算器"),
    "tool_date": ("Calendar", "日历"),
    "tool_statistics": ("Count of the library", "资料库统计"),
    "tool_outline": ("Outline", "目录"),
    "tool_web_search": ("Web search", "网络搜索"),
    "tool_python": ("Python", "Python"),
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
    # Dates
    "date_now": ("It is {day}, {clock}.", "现在是{day}{clock}。"),
    "date_unreadable": (
        "It can't be told which day is meant; write it such as 25 December 2026 or 2026-12-25.",
        "看不出指的是哪一天；请写成 2026年12月25日 或 2026-12-25 这样的形式。",
    ),
    "date_between": (
        "{count:day|days} lie between {first} and {last}.",
        "{first}与{last}相隔 {count} 天。",
    ),
    "date_today": ("{last} is today.", "{last}就是今天。"),
    "date_from_today_after": ("{last} is in {count:day|days}.", "{last}在 {count} 天之后。"),
    "date_from_today_before": ("{last} was {count:day|days} ago.", "{last}是 {count} 天之前。"),
    "date_shifted_after": ("{last}: {count:day|days} after {first}.", "{last}：{first}之后 {count} 天。"),
    "date_shifted_before": ("{last}: {count:day|days} before {first}.", "{last}：{first}之前 {count} 天。"),
    "date_leap": ("{year} is a leap year.", "{year}年是闰年。"),
    "date_no_leap": ("{year} is no leap year.", "{year}年不是闰年。"),
    # Statistics
    "statistics_none": ("There are no pages here.", "这里没有网页。"),
    "statistics_of": ("Of the pages: {part}", "其中：{part}"),
    "statistics_counts": (
        "{pages:page|pages} from {sites:site|sites} in {languages:language|languages}, about {words:word|words} in"
        " {chunks:chunk|chunks}. The last import was {last} UTC.",
        "共 {pages} 个网页，来自 {sites} 个网站，{languages} 种语言，约 {words} 词（中文按字计），{chunks} 个片段。"
        "最近一次导入：{last} UTC。",
    ),
    "statistics_more": ("and {count} more", "另有 {count} 项"),
    "statistics_newest": ("Newest:", "最新的："),
    "statistics_oldest": ("Oldest:", "最早的："),
    "statistics_largest": ("Largest, with their characters:", "最长的（字符数）："),
    "statistics_shortest": ("Shortest, with their characters:", "最短的（字符数）："),
    "statistics_languages": ("Pages by language:", "各语言的网页数："),
    "statistics_sites": ("Pages by site:", "各网站的网页数："),
    "statistics_list": ("Pages:", "网页："),
    # Outline
    "outline_of": ("Headings of {title}:", "{title} 的标题："),
    "outline_none": ("{title} has no headings.", "{title} 没有小标题。"),
    "outline_which": (
        "It can't be told which page is meant; name it by its title or its address.",
        "看不出指的是哪个网页；请写出它的标题或网址。",
    ),
    # Searches
    "search_found": ("{count:passage|passages}: {titles}", "{count} 段：{titles}"),
    "search_none": ("Nothing was found.", "没有找到。"),
    "web_tool_off": (
        "The web can't be searched from here: set SEARXNG_URL or TAVILY_API_KEY, and leave this library out of"
        " WEB_SEARCH_EXCEPT.",
        "这里无法搜索网络：请设置 SEARXNG_URL 或 TAVILY_API_KEY，并确认 WEB_SEARCH_EXCEPT 中没有这个资料库。",
    ),
    # Code
    "code_off": ("Running code is switched off (TOOLS_CODE).", "运行代码的功能已关闭（TOOLS_CODE）。"),
    "code_long": (
        "The program is too long; at most {limit} characters are run.",
        "程序太长；最多运行 {limit} 个字符。",
    ),
    "code_silent": ("The program printed nothing.", "程序没有输出。"),
    "code_failed": ("The program ended with an error: {error}", "程序出错：{error}"),
    "code_reached_out": (
        "The program reached for files, the network or other processes, which are closed to it.",
        "程序试图访问文件、网络或其他进程，这些对它都是关闭的。",
    ),
    "code_output": ("The program printed more than it may.", "程序的输出超出限制。"),
    "code_memory": ("The program needs more memory than it may have.", "程序需要的内存超出限制。"),
    "code_slow": ("The program was ended after {seconds} s.", "程序运行超过 {seconds} 秒，已被终止。"),
    "code_not_closed": (
        "This system cannot close files and network to a program, so no code is run.",
        "本系统无法对程序关闭文件与网络，因此不运行任何代码。",
    ),
    "doctor_code": ("runs with files, network and processes closed to it", "运行时文件、网络和进程均已关闭"),
    # The run
    "chat_no_tools": ("{model} takes no tools; they were chosen by rules.", "{model} 不支持工具；已由规则选择工具。"),
    "tool_timeout": ("The tool {name} did not answer within {seconds} s.", "工具 {name} 未在 {seconds} 秒内完成。"),
    "tool_missing": ("There is no tool {name}.", "没有名为 {name} 的工具。"),
    "wish_unknown": (
        "I can't tell what is wanted. You could ask something of your pages, or one of these:",
        "没有明白您的意思。您可以就您的网页提问，或者试试下面这些：",
    ),
    "wish_first": ("Summarise the pages in this library", "总结这个资料库里的网页"),
    "wish_second": ("How many pages do I have?", "我有多少网页？"),
    "wish_third": ("What changed in the last 7 days?", "最近七天有什么变化？"),
    "step_called": ("Called a tool.", "调用了工具。"),
    "step_said": ("Wrote what came of it.", "写出了结果。"),
}
