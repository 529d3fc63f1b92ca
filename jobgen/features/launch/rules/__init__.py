"""Rules about launchers."""
