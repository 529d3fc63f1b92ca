"""Validate the kinds of resource.k8s.io: devices, their classes, and claims for them."""
