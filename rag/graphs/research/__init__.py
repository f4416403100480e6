"""Research: plan, search in parallel, read, decide how to go on, and a report in which every sentence is checked."""
