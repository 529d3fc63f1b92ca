"""Completion: what can be written at a position of a document, from schemas, from the repository and from examples."""
