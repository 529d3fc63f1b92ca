"""Rules about jobs that Argo CD or Flux applies."""
