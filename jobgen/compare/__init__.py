"""Compare two snapshots of a repository: what a merge does to every object, and which line is the cause."""
