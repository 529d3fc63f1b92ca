"""Read commands: the scripts of shells as trees, and command lines as words."""
