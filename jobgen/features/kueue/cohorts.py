"""The cohorts of a cluster, as its objects name them."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_PARENTS = {"Cohort": ("parentName", "parent"), "ClusterQueue": ("cohortName", "cohort")}
"""The fields that name the cohort above an object; older versions of the API have the second."""


def get_parent(obj: Mapping[str, Node]) -> Node:
    """Return the node that names the cohort above a Cohort or ClusterQueue; None if there is none."""
    spec = as_mapping(obj.get("spec"))
    return next((spec[field] for field in _PARENTS.get(as_text(obj.get("kind")), ()) if as_text(spec.get(field))), None)
