"""Which way a message goes: it is a question, or something is to be saved, summarised, counted, reckoned or looked up.

`router.Router` decides, first by rules, then by a classifier, and where that is unsure by the fast chat model.
"""
