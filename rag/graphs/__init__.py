"""The modes of answering, each a LangGraph graph in its own module or folder. They don't depend on each other."""
