"""What Argo CD and Flux must be told about training jobs: how they are doing, and which fields are not Git's."""
