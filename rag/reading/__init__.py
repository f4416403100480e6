"""Text extraction from bytes: charset, main text of pages, PDF, office files, tables, mail, feeds and sitemaps.

Documents may be hostile, so all of them are read in a child process that can be killed: `parser` is the parent's end of
its pipe, `parser_child` the child's. `quality` tells walls and mojibake from pages.
"""
