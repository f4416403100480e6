"""The commands of the command line. Each prints its rows and returns the exit status."""
