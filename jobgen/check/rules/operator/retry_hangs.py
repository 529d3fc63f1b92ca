"""Jobs that hang after a failure."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.suggest import find_key
from jobgen.spec.kinds import parse_version

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
# Since then, the webhook of JobSet ignores leaders that have failed.
_FIXED = (0, 13)


@rule("manifest", WARNING, kinds=("JobSet",))
def retry_hangs(manifest: Manifest) -> Iterator[Violation]:
    """A JobSet with exclusive placement whose Jobs retry pods, so it hangs after a failure.

    With exclusive placement, the webhook of JobSet before 0.13 admits the pods of a Job only if there is exactly one
    pod with index 0, the leader. If that pod fails and the Job retries it, there are two: all other pods are refused,
    and the JobSet neither fails nor restarts.

    Set `backoffLimit: 0` in the Jobs: a failed pod then fails its Job, and the JobSet restarts as a whole.
    """
    version = str(manifest.cluster.operators.get("jobset", ""))
    if manifest.group != "jobset.x-k8s.io" or not version or parse_version(version) >= _FIXED:
        return
    for item in map(as_mapping, as_list(manifest.spec.get("replicatedJobs"))):
        job = as_mapping(get_path(item, "template", "spec"))
        annotations = as_mapping(get_path(item, "template", "metadata", "annotations"))
        owner = next((each for each in (manifest.annotations, annotations) if as_text(each.get(_EXCLUSIVE))), None)
        # With a node selector of one's own, the webhook does nothing; a single pod has no followers.
        pods = max(as_integer(job.get("parallelism")) or 1, as_integer(job.get("completions")) or 1)
        if owner is None or _NODE_SELECTOR in {**manifest.annotations, **annotations} or pods < 2:
            continue
        limit = job.get("backoffLimit")
        if as_integer(limit) != 0:
            shown = "is not set" if limit is None else f"is `{as_integer(limit)}`"
            message = f"`backoffLimit` {shown}, so a failed leader is retried; with `exclusive-topology`, JobSet"
            message += f" {version} then refuses all other pods, and the job hangs"
            node: Node = find_key(owner, _EXCLUSIVE) if limit is None else limit
            yield Violation(node, f"{message}; set `backoffLimit: 0`")
