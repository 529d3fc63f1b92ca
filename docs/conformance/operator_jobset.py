"""JobSet's webhook and CRD, on the objects of its own tests."""

from conformance._operators import run_operator as run

__all__ = ["run"]
