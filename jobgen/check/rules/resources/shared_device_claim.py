"""Claims for devices that all pods of a job share."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES, find_pods

# A claim can be reserved for so many pods.
_MOST = 256


@rule("manifest", WARNING)
def shared_device_claim(manifest: Manifest) -> Iterator[Violation]:
    """A ResourceClaim that several pods of one object name.

    A ResourceClaim is allocated once. All pods that name it share its devices, and devices of a node force all pods
    onto that node; the ones that do not fit there stay `Pending`. More than 256 pods cannot share a claim, which is an
    error.

    Use `resourceClaimTemplateName`: each pod gets a claim of its own.
    """
    if not any("resourceClaims" in pod.spec for pod in manifest.pods):
        return
    key = (manifest.group, manifest.kind_name)
    for found in find_pods(manifest.object, POD_SETS.get(key) or REPLICA_TYPES.get(key, ())):
        spec = as_mapping(as_mapping(found.template).get("spec"))
        for entry in map(as_mapping, as_list(spec.get("resourceClaims"))):
            name = entry.get("resourceClaimName")
            if as_text(name) and found.total > 1:
                message = f"all {found.total} pods name the ResourceClaim `{as_text(name)}`, so they share its devices"
                message += " and run on one node; use `resourceClaimTemplateName`, which gives each pod its own"
                yield Violation(name, message, severity=ERROR if found.total > _MOST else WARNING)
