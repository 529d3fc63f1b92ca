"""Validation of the kinds of the group `autoscaling`."""
