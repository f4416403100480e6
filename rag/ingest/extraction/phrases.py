"""Signs in a block's words: prices, dates, sentences, and what menus and invitations say everywhere."""

from __future__ import annotations

import re

_BOILERPLATE = re.compile(
    r"sign in|sign up|log ?in|register|add to (?:cart|bag|basket|wish)|subscribe|newsletter|cookie|privacy"
    r"|terms (?:of|and|&)|all rights reserved|copyright|©|share (?:on|this|via)|follow us|read more|learn more"
    r"|view (?:all|more|cart)|show more|see (?:all|more)|load more|skip to|back to top|contact us|about us|my account"
    r"|free shipping|sort by|filter|next page|previous|powered by|\bmenu\b|search|download the app|related"
    r"|you may also|recommended|recently viewed|advertisement|sponsored|javascript|browser|reply|report|quote|edit"
    r"|save|print|登录|注册|版权|分享|相关|推荐|更多|下一页|上一页|关注|收藏|首页|返回顶部|评论|登入|註冊|版權|相關|推薦",
    re.IGNORECASE,
)
_FURNITURE_HEADING = re.compile(
    r"relat|similar|recommend|also (?:like|bought|view|enjoy)|you m(?:ay|ight)|more (?:from|in|like|stor|post|art|on)"
    r"|popular|trending|recent|latest|newsletter|subscribe|follow|share|comment|leave a reply|categor|tags|archive"
    r"|sign up|contact|connect|footer|about us|sponsor|customers|top stor|navigation|menu|filter|sort"
    r"|相关|推荐|热门|最新|评论|猜你喜欢|相關|推薦|熱門|留言",
    re.IGNORECASE,
)
_PRICE = re.compile(r"[$€£¥]\s?\d|\d\s?(?:USD|EUR|GBP|元|€|kr)\b")
_DATE = re.compile(
    r"\b(?:19|20)\d\d\b|\b\d{1,2}[:/]\d\d\b|\bago\b|(?:19|20)\d\d年"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\"'”’)\]」』]*$")
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SHORT = 300


def size(text: str, words: int) -> int:
    """The length of `text` in words, of which `words` stand between spaces; two ideographs make one."""
    return words if text.isascii() else words + len(_WITHOUT_SPACES.findall(text)) // 2


def ends_sentence(text: str) -> bool:
    return bool(_SENTENCE_END.search(text[-8:]))


def is_boilerplate(text: str) -> bool:
    """Whether the start of `text` has a phrase of menus, buttons and notices."""
    return bool(_BOILERPLATE.search(text[:_SHORT]))


def opens_furniture(heading: str) -> bool:
    """Whether a heading announces what is not this page's own: related pages, comments, invitations."""
    return bool(_FURNITURE_HEADING.search(heading[:_SHORT]))


def has_price(text: str) -> bool:
    return bool(_PRICE.search(text))


def has_date(text: str) -> bool:
    return bool(_DATE.search(text))
