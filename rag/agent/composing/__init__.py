"""Ways to put an answer together from many passages: all at once, one after the other, or condensed first."""
