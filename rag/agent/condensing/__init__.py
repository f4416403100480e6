"""Follow-ups completed into questions that stand alone, by rules of two languages or by a chat model.

Hands on `condense`. Each language has files for what a follow-up leaves out (gaps), what a question was about,
where a new part belongs (slots), and how the follow-up is completed.
"""
