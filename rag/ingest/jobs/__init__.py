"""Imports that survive a closed tab, a crash and a restart.

Jobs and their items are stored in the database; one worker processes them, jobs in turn, and records the progress.
"""
