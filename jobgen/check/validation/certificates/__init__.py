"""Validate the kinds of certificates.k8s.io."""
