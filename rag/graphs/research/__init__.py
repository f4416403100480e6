"""The research mode: plan, search in parallel, read, decide on further steps, and write a report that is checked."""
