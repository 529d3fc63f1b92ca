"""Rules about devices, memory and processes."""
