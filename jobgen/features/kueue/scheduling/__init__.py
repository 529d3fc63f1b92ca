"""Scheduling cycles: the state of queues, the order in which workloads are tried, and what becomes of them."""
