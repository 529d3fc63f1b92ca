"""Code actions: changes of files that an editor offers at a position, each with what it leads to."""
