"""Validation of the kinds of the group without a name: Pod, Service, ConfigMap and others."""
