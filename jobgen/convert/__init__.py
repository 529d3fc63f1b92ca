"""Convert manifests to job specs, and jobs from one kind to another."""
