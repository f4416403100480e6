"""Background imports, which survive a closed tab, a crash and a restart.

Jobs and their items are stored in the database; a worker processes the jobs in turn and records the progress.
"""
