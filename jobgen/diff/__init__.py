"""What a change does to the jobs of a repository."""
