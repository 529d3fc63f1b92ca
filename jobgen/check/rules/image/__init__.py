"""Images that may not be what was meant."""
