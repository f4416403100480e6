"""What the commands of the command line do. Each prints its rows and returns the exit status."""
