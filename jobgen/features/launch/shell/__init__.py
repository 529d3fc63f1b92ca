"""A shell without a container: what a script starts, with which words and variables."""
