"""What a version of Kueue knows and does by default: feature gates, fields, and what is not simulated."""
