"""Sentences of rag/ingest/discovery and rag/web/search."""

from __future__ import annotations

MESSAGES: dict[str, tuple[str, str]] = {
    "robots_refused": (
        "{url} was left out: the robots.txt of {host} asks programs not to read it.",
        "已跳过 {url}：{host} 的 robots.txt 要求程序不要读取它。",
    ),
    "robots_unreadable": (
        "{url} was not fetched: the robots.txt of {host}, which says what programs may read, cannot be read now. "
        "Try again later.",
        "未抓取 {url}：{host} 的 robots.txt（说明程序可读取哪些网页）目前无法读取。请稍后再试。",
    ),
    "sitemap_missing": (
        "No sitemap was found for {url}. Follow links from it instead, or give the address of its sitemap.",
        "没有找到 {url} 的站点地图。请改为从该网页跟随链接，或提供站点地图的网址。",
    ),
    "sitemap_empty": (
        "The sitemap of {host} names no page under {prefix} that may be read. Try a shorter path.",
        "{host} 的站点地图中没有位于 {prefix} 之下且可读取的网页。请尝试更短的路径。",
    ),
    "feed_missing": (
        "{url} is no RSS or Atom feed, and names none. Give the address of a feed.",
        "{url} 不是 RSS 或 Atom 订阅源，也没有指向订阅源。请提供订阅源的网址。",
    ),
    "feed_empty": (
        "The feed {url} names no page that may be read.",
        "订阅源 {url} 中没有可读取的网页。",
    ),
    "web_search_unreachable": (
        "The search service {name} cannot be reached. Check its address, and whether it is running.",
        "无法连接搜索服务 {name}。请检查其地址以及它是否在运行。",
    ),
    "web_search_refused": (
        "The search service {name} refused the request. Check TAVILY_API_KEY, or for SearXNG that its settings allow "
        "the format json.",
        "搜索服务 {name} 拒绝了请求。请检查 TAVILY_API_KEY；若用 SearXNG，请确认其设置允许 json 格式。",
    ),
    "web_search_busy": (
        "The search service {name} takes no more requests for now. Try again later.",
        "搜索服务 {name} 暂时不接受更多请求。请稍后再试。",
    ),
    "web_search_failed": (
        "The search service {name} answered with status {status}. Check its address; addresses that lead elsewhere are "
        "not followed.",
        "搜索服务 {name} 返回了状态 {status}。请检查其地址；重定向不会被跟随。",
    ),
    "web_search_slow": (
        "The search service {name} did not answer in time. Try again.",
        "搜索服务 {name} 未能及时回应。请重试。",
    ),
    "web_search_unreadable": (
        "What the search service {name} answered is no list of pages. Check its address.",
        "搜索服务 {name} 返回的内容不是网页列表。请检查其地址。",
    ),
}
