"""Sentences of imports in the background: rag/ingest/jobs, schedule.py and discovery, and rag/web/search.py."""

from __future__ import annotations

MESSAGES: dict[str, tuple[str, str]] = {
    "too_many_jobs": (
        "{most} of your imports have not ended yet, which is as many as one person may have. Wait for one, or "
        "cancel one.",
        "您有 {most} 个导入任务尚未结束，已达每人上限。请等待其中一个结束，或取消一个。",
    ),
    "nothing_to_recheck": (
        "No page here came from the web, so there is nothing to look at again.",
        "这里没有来自网络的网页，无需重新检查。",
    ),
    "site_unavailable": (
        "This program was started without what finds the pages of a site.",
        "本程序启动时没有启用查找网站网页的功能。",
    ),
    "store_stopped_job": (
        "Paused, because the database failed several times in a row: {why_en} Resume once that is put right.",
        "数据库连续多次出错，已暂停：{why_zh}问题解决后请继续。",
    ),
    "host_silent": (
        "Not asked for: {host} let {count:page|pages} in a row run out of time. Try again later.",
        "未请求：{host} 连续 {count} 个网页超时。请稍后再试。",
    ),
    "timeouts_stopped_job": (
        "Paused, because {count:page|pages} in a row, of several sites, ran out of time. Check the network, then "
        "resume.",
        "多个网站连续 {count} 个网页超时，已暂停。请检查网络后继续。",
    ),
    "decision_unfit": (
        "That is not possible for this page any more. Look at its present state.",
        "此网页已不能这样处理，请查看其当前状态。",
    ),
    "item_unknown": ("There is no such page in this import.", "此导入任务中没有这个网页。"),
    "schedule_unknown": (
        "There is no such schedule; it may have been removed.",
        "没有这个定期检查，可能已被删除。",
    ),
    "schedule_too_often": (
        "Pages can be checked again every {fewest:hour|hours} at most often, every {most:hour|hours} at most rarely.",
        "重新检查的间隔最短 {fewest} 小时，最长 {most} 小时。",
    ),
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
