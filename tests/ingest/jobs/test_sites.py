"""Jobs that discover their pages, and jobs that re-check pages."""

from __future__ import annotations

from typing import Any

import pytest

from rag.errors import FetchError
from rag.ingest.jobs.service import Jobs, JobView
from rag.ingest.pipeline import GONE_AFTER, Ingestor
from rag.ingest.sources import LoadedPage, Source, file_sources, web_source
from rag.locales import say
from tests.ingest.jobs.conftest import reasons, statuses, wait_for_job
from tests.support.hashed_model import HashedModel
from tests.support.page_server import PageServer, generated_page
from tests.support.site_server import OUTCOME_BY_ERROR, SiteServer, merge_duplicates


def outcomes(job: JobView, site: SiteServer) -> dict[str, str]:
    """Return the outcome of each path, as an `Outcome` of the site."""
    words = {"added": "page", "duplicate": "duplicate"}
    found = {}
    for item in job.items:
        assert item.result is not None
        outcome = words.get(item.result.status) or OUTCOME_BY_ERROR[item.result.notice.code]
        found[item.url.removeprefix(site.url("").removesuffix("/"))] = outcome
    return found


def test_a_crawl_finds_every_page_and_reports_its_outcome(jobs: Jobs, site: SiteServer, ingestor: Ingestor) -> None:
    job_id = jobs.submit_site(site.url("/"), "crawl", library="main", max_depth=12, max_pages=500)
    job = wait_for_job(jobs, job_id)
    assert (job.kind, job.title, job.discovery) == ("crawl", site.url("/"), "done")
    found = outcomes(job, site)
    assert merge_duplicates(found) == merge_duplicates(site.expected)
    assert ingestor.library.page_count() == len(site.paths("page"))
    counts = site.counts
    assert all(counts[path] == 1 for path in site.paths("page") if path in found and not site_copy(site, path))
    assert not [path for path in counts if path.startswith(("/private", "/nofollow", "/photo"))]
    start = job.items[0]
    assert (start.url, start.depth, start.parent) == (site.url("/"), 0, None)
    assert {item.depth for item in job.items if item.parent == 0} == {1}


def site_copy(site: SiteServer, path: str) -> bool:
    """Return whether a redirect leads to the path, so that it is fetched again."""
    return path in [answer.headers.get("Location") for old in site.expected if (answer := site.answer(old))]


def test_a_sitemap_and_a_feed_give_their_pages(jobs: Jobs, site: SiteServer) -> None:
    job = wait_for_job(jobs, jobs.submit_site(site.url("/"), "sitemap", library="main"))
    assert merge_duplicates(outcomes(job, site)) == merge_duplicates(site.expected)
    feed = wait_for_job(jobs, jobs.submit_site(site.url("/feed.xml"), "feed", library="main"))
    assert feed.total == 10
    assert "already_here" in reasons(feed)


def test_a_redirect_out_of_the_site_waits_for_a_decision(
    jobs: Jobs, page_server: PageServer, site: SiteServer, ingestor: Ingestor
) -> None:
    elsewhere = page_server.add("/elsewhere", generated_page(7))
    page_server.add("/docs/away", b"", status=302, headers={"Location": elsewhere})
    page_server.add("/docs/moved", b"", status=302, headers={"Location": "/docs/here"})
    page_server.add("/docs/here", generated_page(8))
    links = '<a href="/docs/away">Away</a> <a href="/docs/moved">Moved</a>'
    start = page_server.add("/docs/", generated_page(9).replace("</body>", f"{links}</body>"))
    job_id = jobs.submit_site(start, "crawl", library="main")
    job = wait_for_job(jobs, job_id)
    away = next(item for item in job.items if item.url.endswith("/away"))
    assert {item.url.rpartition("/")[2]: item.result.status for item in job.items if item.result} == {
        "": "added",
        "away": "held",
        "moved": "added",
    }
    assert away.result and (away.result.notice.code, away.result.choices) == ("leads_away", ("add_anyway", "skip"))
    assert elsewhere in say(away.result.notice, "en") and "Report 7" in away.result.preview
    jobs.decide(job_id, away.position, "add_anyway")
    assert statuses(wait_for_job(jobs, job_id)).count("added") == 3


def test_a_site_without_a_sitemap_says_so_and_can_be_tried_again(jobs: Jobs, page_server: PageServer) -> None:
    job_id = jobs.submit_site(page_server.url("/"), "sitemap", library="main")
    job = wait_for_job(jobs, job_id)
    assert (job.state, job.discovery, job.total) == ("done", "failed", 0)
    assert job.notice is not None
    assert job.notice.code == "sitemap_missing"
    url = page_server.add("/only", generated_page(1))
    page_server.add("/sitemap.xml", f"<urlset><url><loc>{url}</loc></url></urlset>", content_type="application/xml")
    jobs.retry_failed(job_id)
    job = wait_for_job(jobs, job_id)
    assert (job.notice, statuses(job)) == (None, ["added"])


def imported(jobs: Jobs, site: SiteServer) -> None:
    pages = [web_source(site.url(path)) for path in site.paths("page")]
    wait_for_job(jobs, jobs.submit([*pages, *file_sources("note.md", b"# Note\n\nA note.")], library="main"))


def test_only_what_changed_is_encoded_again(
    jobs: Jobs, site: SiteServer, model: HashedModel, ingestor: Ingestor
) -> None:
    imported(jobs, site)
    changed = [path for path in site.paths("page") if path.endswith(".html")][:2]
    site.change(changed)
    site.reset_counters()
    model.encoded.clear()
    job = wait_for_job(jobs, jobs.recheck("main"))
    assert job.total == len(site.paths("page")) == ingestor.library.page_count() - 1
    assert {item.url for item in job.items if item.result and item.result.status == "updated"} == {
        site.url(path) for path in changed
    }
    assert job.counts == {"updated": 2, "unchanged": job.total - 2}
    assert site.not_modified == job.total - 2
    assert 2 <= len(model.encoded) <= 4


def test_a_recheck_of_a_site_or_of_chosen_pages(jobs: Jobs, site: SiteServer, ingestor: Ingestor) -> None:
    imported(jobs, site)
    pages = [page for page in ingestor.library.pages() if page.source == "web"]
    chosen = [page.url_hash for page in pages[:3]]
    assert {item.url for item in wait_for_job(jobs, jobs.recheck("main", chosen)).items} == {p.url for p in pages[:3]}
    assert wait_for_job(jobs, jobs.recheck("main", site="127.0.0.1")).total == len(pages)
    nothing = wait_for_job(jobs, jobs.recheck("main", site="none.example"))
    assert nothing.notice is not None
    assert (nothing.total, nothing.notice.code) == (0, "nothing_to_recheck")


def cut_off(monkeypatch: pytest.MonkeyPatch, ingestor: Ingestor, urls: set[str]) -> None:
    """Make these addresses unreachable, as without a network."""
    read = ingestor.read

    def reading(source: Source, *args: Any, **options: Any) -> LoadedPage:
        if source.url not in urls:
            return read(source, *args, **options)
        error = FetchError("unresolved", url=source.url, host="x.example")
        return LoadedPage(source, options["known"], options["known"], error=error)

    monkeypatch.setattr(ingestor, "read", reading)


def test_without_a_network_no_page_counts_as_gone(
    jobs: Jobs, page_server: PageServer, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [page_server.url(f"/page/{number}") for number in range(4)]
    wait_for_job(jobs, jobs.submit([web_source(url) for url in urls], library="main"))
    before = ingestor.library.pages()
    cut_off(monkeypatch, ingestor, set(urls))
    for _ in range(GONE_AFTER + 1):
        assert set(reasons(wait_for_job(jobs, jobs.recheck("main")))) == {"page_unheard"}
    assert ingestor.library.pages() == before


@pytest.mark.parametrize("lost", [0, 3])
def test_pages_of_an_unreachable_site_are_gone_in_the_end(
    jobs: Jobs, page_server: PageServer, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """It doesn't matter whether its page is checked first or last."""
    urls = [page_server.url(f"/page/{number}") for number in range(4)]
    for url in urls:
        wait_for_job(jobs, jobs.submit([web_source(url)], library="main"))
    cut_off(monkeypatch, ingestor, {urls[lost]})
    rows = []
    for _ in range(GONE_AFTER):
        job = wait_for_job(jobs, jobs.recheck("main"))
        rows += [item.result.notice.code for item in job.items if item.url == urls[lost] and item.result]
        assert job.counts["unchanged"] == 3
    assert rows == ["page_missed"] * (GONE_AFTER - 1) + ["page_lost"]
    assert {page.url for page in ingestor.library.pages() if page.status == "gone"} == {urls[lost]}
