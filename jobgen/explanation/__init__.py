"""Explain where the values of a job come from, and what a rule means."""
