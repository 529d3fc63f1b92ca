"""Validate the kinds of networking.k8s.io."""
