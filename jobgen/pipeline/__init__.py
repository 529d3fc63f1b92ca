"""Run all jobs in all environments: read, render, check, locate findings."""
