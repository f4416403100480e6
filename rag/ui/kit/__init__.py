"""What every wing is made of: session, words, safe renderers, sources, and parts drawn on several pages."""
