"""Validate the kinds of apiregistration.k8s.io."""
