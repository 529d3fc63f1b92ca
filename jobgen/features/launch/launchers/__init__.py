"""Programs that start the processes of a job, one module each."""
