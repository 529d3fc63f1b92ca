"""Validate the kinds of rbac.authorization.k8s.io."""
