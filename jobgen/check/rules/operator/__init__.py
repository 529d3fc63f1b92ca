"""Rules about what the operators reject, ignore or handle differently."""
