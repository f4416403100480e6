"""Jobs, schedules, conversations, feedback, evaluations and summaries in one database: `database.Database`."""
