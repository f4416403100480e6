"""The library: its pages as a list, one page with its texts, schedules, and actions on whole libraries."""
