"""The webhooks and CRDs of training-operator 1.9 and mpi-operator, on the objects of their own tests."""

from conformance._operators import run_operator as run

__all__ = ["run"]
