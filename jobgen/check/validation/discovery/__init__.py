"""Validation of the kinds of `discovery.k8s.io`."""
