"""Sentences of rag/ingest/jobs and rag/ingest/schedule.py."""

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
}
