"""The settings: the parts in use, a chat model of one's own, the rules that models get, and who may enter."""
