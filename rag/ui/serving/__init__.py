"""The server side: startup, host checks, headers, upload limits and blocked endpoints. It draws nothing."""
