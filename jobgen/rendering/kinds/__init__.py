"""What kinds need beyond their description: one module for each `code`, with a function `prepare`."""
