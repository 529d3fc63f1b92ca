"""What a pod could do to its node, and what Git should not know."""
