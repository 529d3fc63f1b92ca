"""Validation of the kinds of `coordination.k8s.io`."""
