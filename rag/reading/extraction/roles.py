"""Purposes of elements, from names that the web's templates share: landmarks and class-name tokens."""

from __future__ import annotations

import re
from functools import lru_cache

LANDMARKS = tuple("nav header footer aside form main article table list quote details figure".split())
_LANDMARK_OF = {
    **{name: name for name in ("nav", "header", "footer", "aside", "form", "main", "article", "table", "details")},
    **dict.fromkeys(("ul", "ol", "dl"), "list"),
    "menu": "nav",
    "blockquote": "quote",
    "fieldset": "form",
    **dict.fromkeys(("figure", "figcaption"), "figure"),
}
_LANDMARK_OF_ROLE = {
    **dict.fromkeys(("navigation", "menu", "menubar", "tablist"), "nav"),
    **dict.fromkeys(("form", "search", "dialog", "alertdialog"), "form"),
    **{name: name for name in ("main", "article", "table", "list")},
    "banner": "header",
    "contentinfo": "footer",
    "complementary": "aside",
}
_TOKENS = {
    "nav": "nav navbar navigation navigations menu menus submenu megamenu breadcrumb breadcrumbs crumb "
    "pagination pager paging tabs sitenav topnav mainnav subnav skip links",
    "contents": "toc contents tableofcontents",
    "chrome": "header footer masthead topbar foot footers headers copyright legal colophon banner",
    "side": "sidebar aside rail widget widgets sidenav secondary side",
    "related": "related recommend recommended recommendation recommendations similar also upsell crosssell "
    "cross carousel slider trending popular recent recently suggested suggestions more next prev "
    "previous latest viewed",
    "social": "share sharing social follow facebook twitter like likes socials",
    "consent": "cookie cookies consent gdpr privacy cmp",
    "promotion": "ad ads advert advertisement adverts sponsor sponsored promo promotion promotions newsletter "
    "subscribe subscription signup cta callout popup modal overlay dialog drawer flyout offcanvas "
    "toast alert notice notification announcement",
    "control": "form search filter filters facet facets refine refinement sort sorting login signin account "
    "cart basket checkout toolbar controls control button buttons btn dropdown selector swatch "
    "swatches picker quantity actions action toggle",
    "comment": "comment comments reply replies respond discussion",
    "byline": "meta byline author date time timestamp published tag tags category categories avatar user "
    "username profile stats count badge info",
    "content": "content article post entry story body text main description desc detail details prose markdown "
    "documentation docs doc summary about copy richtext rte wysiwyg rich",
    "item": "item items card cards product products result results listing listings tile tiles grid list "
    "archive collection feed loop",
    "review": "review reviews rating ratings testimonial testimonials stars",
    "message": "message messages thread topic answer answers question questions postbody cooked msg",
    "price": "price prices pricing sale amount",
    "hidden": "hidden hide sr visually screen invisible collapse collapsed",
    "specification": "spec specs specification specifications features feature attributes faq accordion tab panel",
    "title": "title heading headline name subtitle",
    "media": "caption captions credit credits figure figcaption gallery image images img lightbox media photo photos "
    "picture player slide slides slideshow thumb thumbnail video videos",
    "layout": "hero jumbotron section block wrapper container row col column",
}
ROLES = tuple(_TOKENS)
_ROLE_BITS: dict[str, int] = {}
for _bit, _words in enumerate(_TOKENS.values()):
    for _word in _words.split():
        _ROLE_BITS[_word] = _ROLE_BITS.get(_word, 0) | 1 << _bit
_LANDMARK_BITS = {name: 1 << bit for bit, name in enumerate(LANDMARKS)}
_WORD_ENDS = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")
_MAX_NAME = 400


def landmark_bits(tag: str, role: str | None) -> int:
    """Return one bit for each of LANDMARKS that an element is by its tag or its ARIA role."""
    bits = _LANDMARK_BITS.get(_LANDMARK_OF.get(tag, ""), 0)
    return bits | _LANDMARK_BITS.get(_LANDMARK_OF_ROLE.get(role, ""), 0) if role else bits


@lru_cache(maxsize=20_000)
def role_bits(name: str) -> int:
    """Return one bit for each of ROLES that a class or id attribute names."""
    bits = 0
    for token in _WORD_ENDS.split(name[:_MAX_NAME]):
        bits |= _ROLE_BITS.get(token.lower(), 0)
    return bits
