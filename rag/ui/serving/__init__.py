"""What stands around the app as it is served: hosts, headers, uploads, and what is told to nobody. It draws nothing."""
