"""Claims of plain files that several pods of an object mount, although only one node or one pod can."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.cluster.state import ClusterState, name_object
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_pods
from jobgen.model.finding import Problem, Severity
from jobgen.model.place import At

RULE = "shared-single-node-claim"
ONE_NODE, ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"
_CLAIM = "PersistentVolumeClaim"


def find_shared_claims(manifest: Manifest, state: ClusterState) -> Iterator[Problem]:
    """Report each claim of the files that more pods of an object mount than its access mode allows."""
    claims = {name_object(obj)[1:]: obj for obj in state.objects.get(_CLAIM, ())}
    pods: dict[str, int] = {}
    uses: dict[str, At] = {}
    for pod, count in count_pods(manifest) if claims else ():
        for volume in pod.volumes:
            source = as_mapping(volume.get("persistentVolumeClaim"))
            name = as_text(source.get("claimName"))
            pods[name] = pods.get(name, 0) + count
            uses.setdefault(name, At(source, "claimName"))
    for name, count in pods.items():
        claim = claims.get((manifest.namespace, name))
        modes = {as_text(mode) for mode in as_list(get_path(claim, "spec", "accessModes"))} if claim else set()
        if count > 1 and modes in ({ONE_NODE}, {ONE_POD}):
            mode = modes.pop()
            # The pods of a Job can run one after the other.
            is_certain = mode == ONE_POD and (manifest.group, manifest.kind_name) != ("batch", "Job")
            severity = Severity.ERROR if is_certain else Severity.WARNING
            related = ((get_path(claim, "spec", "accessModes"), f"its access mode is `{mode}`"),)
            message = describe_shared_claim(name, count, mode)
            yield Problem(RULE, message, uses[name], related, category="fleet", severity=severity)


def describe_shared_claim(name: str, pods: int, mode: str) -> str:
    """Say that several pods of an object mount a claim."""
    return f"{pods} pods mount the claim `{name}`, which is {mode}; use `ReadWriteMany` or one claim per pod"
