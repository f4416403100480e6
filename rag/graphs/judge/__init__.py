"""Judge mode: passages scored by themselves, what one lacks asked for in turn, a tree of questions."""
