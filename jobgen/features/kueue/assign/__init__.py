"""Flavors and places for the pod sets of a workload."""
