"""The settings: components in use, a person's chat model, prompts, and access."""
