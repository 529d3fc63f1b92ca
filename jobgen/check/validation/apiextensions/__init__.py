"""Validate the kinds of `apiextensions.k8s.io`."""
