"""Rules over all objects of an environment."""
