"""jobgen: training jobs written once, layered, spelt for their operator, and judged."""

__version__ = "0.1.0"
