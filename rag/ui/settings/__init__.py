"""The settings: components in use, the user's chat model, prompts, memory, and sign-in."""
