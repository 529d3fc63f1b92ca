"""Devices, memory and processes that do not fit together."""
