"""Validate the kinds of flowcontrol.apiserver.k8s.io."""
