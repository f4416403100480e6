"""Jobs, schedules, conversations, feedback, evaluations and summaries in one SQLite file: `database.Database`."""
