"""Queues, gangs and schedulers."""
