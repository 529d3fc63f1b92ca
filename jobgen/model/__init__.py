"""Values that every package shares: data trees, findings, paths, quantities, limits."""
