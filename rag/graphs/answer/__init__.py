"""The answer loop: search, grade the passages, search again in other words, answer."""
