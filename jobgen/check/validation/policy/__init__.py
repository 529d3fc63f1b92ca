"""Validation of the kinds of the group `policy`."""
