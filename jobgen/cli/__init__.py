"""The command line: arguments, terminal, exit codes."""
