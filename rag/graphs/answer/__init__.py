"""The answer loop: search, grade the passages, rewrite the query and search again, answer."""
