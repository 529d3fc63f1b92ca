"""JSON Schemas: of our own formats and of CRDs."""
