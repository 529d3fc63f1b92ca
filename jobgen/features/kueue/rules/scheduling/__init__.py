"""Rules about queues, gang scheduling and schedulers."""
