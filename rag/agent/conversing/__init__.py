"""Conversations and what is kept of them: turns, checkpoints, memory, feedback, exports, further questions."""
