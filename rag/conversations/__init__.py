"""Conversations and what is kept of them: turns, checkpoints, feedback, exports, further questions."""
