"""Conversations and their data: turns, checkpoints, feedback, exports, follow-ups."""
