"""Text extraction from bytes: charset, main text of pages, PDF, office files, tables, mail, feeds and sitemaps.

Documents may be hostile, so they are parsed in a child process that can be killed: `parser` is the parent's end of
the pipe, `parser_child` the child's. `quality` detects interstitials (logins, bot checks) and mojibake.
"""
