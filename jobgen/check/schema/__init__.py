"""Objects against the schemas of their kinds: what the API server validates, and what it passes on."""
