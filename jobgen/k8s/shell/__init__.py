"""Read commands: the scripts of shells as trees, and command lines as words."""

SHELLS = frozenset(("sh", "bash", "ash", "dash", "ksh", "zsh"))
"""The names of shells."""
