"""Imports that survive a closed tab, a crash and a restart.

Jobs and their items are stored in the database; one worker processes them, jobs in turn, and records the progress.
"""

from rag.ingest.discovery import Sites
from rag.ingest.jobs.service import ExternalJobs, Jobs, JobView
from rag.ingest.jobs.steps import OpenIngestor
from rag.store.sql.job_table import JobItem

__all__ = ["ExternalJobs", "JobItem", "JobView", "Jobs", "OpenIngestor", "Sites"]
