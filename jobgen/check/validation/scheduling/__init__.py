"""Validation of the kinds of `scheduling.k8s.io`."""
