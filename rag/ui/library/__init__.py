"""The library: its pages as a table or map, page details, access, schedules, and actions on whole libraries."""
