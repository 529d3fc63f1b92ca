"""Render a job spec to the object of its kind."""
