"""Files on disk: the layout of a repository, atomic writes, Git, the lock file, the rendered tree."""
