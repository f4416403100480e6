"""Routing of messages: questions, and requests to save, summarise, count, calculate or search the web.

`router.Router` decides by rules, then by a classifier, and if that is unsure by the fast chat model.
"""
