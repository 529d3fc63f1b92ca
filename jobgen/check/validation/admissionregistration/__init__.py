"""Validate the kinds of `admissionregistration.k8s.io`."""
