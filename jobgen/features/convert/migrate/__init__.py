"""Migrate: convert a job spec to another kind, and report what becomes of every field."""
