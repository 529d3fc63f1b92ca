"""The shipped schemas as JSON Schema, by release of their operator."""

from jobgen.check.schema.shipped import bundle_schema, find_shipped_schema
from jobgen.spec.overlay import Cluster

OPERATORS = ("training-operator", "trainer", "mpi-operator", "jobset", "kuberay", "volcano", "leaderworkerset", "kueue")


def shipped_schema(api_version, kind, release="", kubernetes=""):
    """The schema of a kind in a release of its operator, or in the newest."""
    cluster = Cluster(operators=dict.fromkeys(OPERATORS, release), kubernetes=kubernetes)
    return bundle_schema(find_shipped_schema(api_version, kind, cluster, any_release=True).schema)
