"""Claims for devices that Trainer drops."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import find_key


@rule("job", WARNING, kinds=("TrainJob",))
def ignored_device_claims(manifest: Manifest) -> Iterator[Violation]:
    """A TrainJob with `claims` in `resourcesPerNode`, which Trainer ignores.

    Trainer copies only the `limits` and `requests` of `resourcesPerNode` into the pods. The container of the node gets
    no devices of the claims, and trains with what its runtime requests.

    Set `resources.claims` of the container `node`, and `resourceClaims` of its pod, in the runtime.
    """
    resources = as_mapping(get_path(manifest.spec, "trainer", "resourcesPerNode"))
    if as_list(resources.get("claims")):
        message = "Trainer ignores `claims` of `resourcesPerNode`, so the nodes get no devices of them"
        yield Violation(find_key(resources, "claims"), f"{message}; set the claims in the runtime")
