"""Shell completion: what can come next on a command line, without importing the commands."""
