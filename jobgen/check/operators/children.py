"""Check the objects that operators create from parts of another object, as the API server validates them."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.object_metadata import validate_object_metadata
from jobgen.check.operators.checks import Violations
from jobgen.check.rules import Violation
from jobgen.check.validation import validate_object
from jobgen.k8s.objects import Manifest
from jobgen.k8s.releases import parse_release
from jobgen.model.data import Node, location_of
from jobgen.model.finding import quoted_values

# The names of children are checked by kind, with their suffixes.
_NAME = "job"
# What operators copy from the metadata of a template.
_COPIED = ("labels", "annotations")


def check_job(
    manifest: Manifest, metadata: Mapping[str, Node], spec: Mapping[str, Node], parent: Node, what: str = "its Job"
) -> Violations:
    """Yield why the API server rejects a Job that an operator creates; `parent` is the node of the whole Job."""
    job: dict[str, Node] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**{key: metadata[key] for key in metadata if key in _COPIED}, "name": _NAME},
        "spec": {**spec},
    }
    problems = [
        *validate_object_metadata(job["metadata"]),
        *validate_object(job, parse_release(manifest.cluster.kubernetes)),
    ]
    for problem in problems:
        # What the operator adds has no location.
        node = problem.node if location_of(problem.node) else parent
        values = quoted_values(problem.message) if problem.evidence is None else problem.evidence
        message = f"the API server rejects {what}: {problem.message}"
        yield Violation(node, message, fix_steps=problem.fix_steps, safe=problem.safe, evidence=values)
