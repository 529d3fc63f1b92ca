"""Input formats: job specs, overlays, kind descriptions, and how their layers merge."""
