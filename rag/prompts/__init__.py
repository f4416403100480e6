"""Prompts of chat models: `texts` loads the instructions, `requests` combines them with the question and passages."""
