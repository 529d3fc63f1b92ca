"""What becomes of the jobs of a cluster: a simulation until nothing changes, and answers about each job."""
