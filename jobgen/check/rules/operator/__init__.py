"""What operators refuse, ignore or choke on."""
