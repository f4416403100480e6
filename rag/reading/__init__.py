"""From bytes to text: the charset, the main text of a page, PDF, office files, tables, mail, feeds and sitemaps.

Documents are hostile, so all but the charset of small things is read in a child process that can be killed: `parser`
stands on this side of its pipe, `parser_child` on the other. `quality` tells walls and mojibake from pages.
"""
