"""Validation of the kinds of `events.k8s.io`."""
