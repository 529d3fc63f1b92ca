"""Validation of the kinds of `node.k8s.io`."""
