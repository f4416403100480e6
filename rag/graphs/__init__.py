"""The modes of answering, each a LangGraph graph in its own folder. They don't depend on each other."""
