"""The formats of a difference, one module each: for terminals, for comments on pull requests, for programs."""
