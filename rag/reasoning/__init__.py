"""What thinks: `reasoner.Reasoner` is what graphs ask, a chat model or rules stand behind it.

Here is also what can be told of a question or of a conversation without any graph.
"""
