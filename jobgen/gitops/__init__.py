"""GitOps integrations: settings for Argo CD and Flux, the Argo CD plugin protocol, and KRM functions."""
