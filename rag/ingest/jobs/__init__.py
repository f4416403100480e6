"""Imports that outlive the tab that asked for them, a crash and a restart.

A job and its items rest in the database; one worker takes them in, jobs in turn, and tells how far it is.
"""

from rag.ingest.jobs.external import ExternalJobs
from rag.ingest.jobs.service import Jobs, JobView
from rag.ingest.jobs.sites import Sites
from rag.ingest.jobs.steps import OpenIngestor
from rag.store.sql.job_table import JobItem

__all__ = ["ExternalJobs", "JobItem", "JobView", "Jobs", "OpenIngestor", "Sites"]
