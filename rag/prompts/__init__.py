"""What chat models are told, in the question's language: a file for each kind of work."""
