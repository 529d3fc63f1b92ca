"""The queues of an environment: what Kueue decides about its jobs, what a change does to that, and report formats."""
