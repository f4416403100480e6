"""The library: its pages as a list, one page with its texts, its schedules, and what is done with whole libraries."""
