"""Finding the pages of a site: robots.txt, sitemaps, feeds, and the links of pages.

A job of a site is a plan and its pages; every page it is given may bring more:

    robots = Robots(fetcher)                                  # one for all jobs: it keeps the rules of sites
    plan = SitePlan(start, "crawl", prefix="/docs/", max_depth=3, max_pages=200)   # or "sitemap", "feed"
    frontier = Frontier(plan, robots, known=pages_of_the_job)  # known is empty for a new job
    pages = begin(plan, fetcher, parser, frontier)             # a new job's first pages; raises IngestError
    for page in pages:                                         # in the order in which they were found
        … read the page; links = parser.run("links", body, url=final_url, charset=charset)["links"]
        pages += frontier.expand(page, links)                  # only new ones, within the plan and robots.txt

The fetcher itself keeps to the limits of each host. `frontier.holds(final_url)` tells whether a
redirect led out of the plan.
"""

from rag.ingest.discovery.frontier import Frontier, SiteKind, SitePlan, begin
from rag.web.robots import Robots
from rag.web.site_scope import FoundPage

__all__ = ["FoundPage", "Frontier", "Robots", "SiteKind", "SitePlan", "begin"]
