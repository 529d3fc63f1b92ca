"""Rules about what launched programs need of their resources."""
