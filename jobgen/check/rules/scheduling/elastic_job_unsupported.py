"""Kueue's annotation for elastic jobs."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep

_ELASTIC = DOMAIN + "elastic-job"


@rule("job", ERROR)
def elastic_job_unsupported(manifest: Manifest) -> Iterator[Violation]:
    """Kueue's annotation for elastic jobs on a kind that Kueue does not resize.

    Kueue's webhook rejects `kueue.x-k8s.io/elastic-job` on the kinds of Kubeflow.

    Remove the annotation.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or _ELASTIC not in annotations:
        return
    group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
    if group == "kubeflow.org" and as_text(annotations[_ELASTIC]) == "true":
        node = annotations[_ELASTIC]
        message = f"Kueue cannot resize {manifest.kind_name} and rejects it with `{_ELASTIC}`; remove the annotation"
        yield Violation(node, message, fix_steps=(FixStep("remove", node, key=_ELASTIC),))
