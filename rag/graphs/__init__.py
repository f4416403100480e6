"""The answer modes: LangGraph graphs, each in a module or package, that don't depend on each other."""
