"""The chat: a question and how to answer it, the answer with what bears it out, and the conversations."""
