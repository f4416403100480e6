"""The chat: a question and its options, the answer with its sources, and the conversations."""
