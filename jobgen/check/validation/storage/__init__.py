"""Validation of the kinds of `storage.k8s.io`."""
