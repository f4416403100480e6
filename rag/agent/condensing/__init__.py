"""Follow-ups completed into questions that stand alone, by rules of two languages or by a chat model.

Hands on `condense`; the languages and the phrases that point back have a file each.
"""
