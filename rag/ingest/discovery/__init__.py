"""Discovery of a site's pages by robots.txt, sitemaps, feeds, and the links of pages.

A site job is a plan and its pages; every page may add more:

    robots = Robots(fetcher)                                  # one for all jobs: it caches sites' rules
    plan = SitePlan(start, "crawl", prefix="/docs/", max_depth=3, max_pages=200)   # or "sitemap", "feed"
    frontier = Frontier(plan, robots, known=pages_of_the_job)  # known is empty for a new job
    pages = begin(plan, fetcher, parser, frontier)             # a new job's first pages; raises IngestError
    for page in pages:                                         # in the order in which they were found
        … read the page; links = parser.run("links", body, url=final_url, charset=charset)["links"]
        pages += frontier.expand(page, links)                  # only new ones, within the plan and robots.txt

The fetcher itself respects the limits of each host. `frontier.contains(final_url)` is false for a
redirect that left the plan.
"""

from rag.ingest.discovery.frontier import Frontier, SiteKind, SitePlan, begin
from rag.web.robots import Robots
from rag.web.site_scope import FoundPage

__all__ = ["FoundPage", "Frontier", "Robots", "SiteKind", "SitePlan", "begin"]
