"""Rules about launchers: their processes against the pods and GPUs of the job."""
