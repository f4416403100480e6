"""The summary mode: summaries of one page, of several, of a library, or of changes in it."""
