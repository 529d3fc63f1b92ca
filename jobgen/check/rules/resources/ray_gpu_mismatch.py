"""GPUs of Ray and GPUs of its pods."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.finding import pluralize
from jobgen.model.quantity import parse_digits


@rule("manifest", WARNING, kinds=tuple(RAY_CLUSTERS))
def ray_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A `num-gpus` in `rayStartParams` other than the number of GPUs of the container.

    Ray trusts the parameter. With more GPUs than the container has, it gives tasks GPUs that do not exist; with
    fewer, some GPUs are never used. Without it, KubeRay sets the number from the limits of the container.

    Remove `num-gpus`.
    """
    if manifest.group != "ray.io":
        return
    cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
    # Ray runs in the first container.
    containers = {id(pod.template): pod.containers[0] for pod in manifest.pods if pod.containers}
    for group in map(as_mapping, (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))):
        node = as_mapping(group.get("rayStartParams")).get("num-gpus")
        container = containers.get(id(group.get("template")))
        declared = parse_digits(as_text(node))
        # `resources` of a group replace the parameter.
        if container is None or declared is None or "resources" in group or not _is_known(container):
            continue
        if container.gpus != declared:
            has = pluralize(container.gpus, "GPU") if container.gpus else "no GPUs"
            message = f"`num-gpus` is `{declared}`, but container `{container.name}` has {has}"
            advice = "remove it, and KubeRay sets the number from the limits"
            yield Violation(node, f"{message}; {advice}", ((container.device_node, ""),))


def _is_known(container: Container) -> bool:
    """Return False if claims, or accelerators other than GPUs, may be what is counted."""
    has_claims = bool(as_mapping(container.data.get("resources")).get("claims"))
    return not has_claims and (bool(container.gpus) or not container.devices)
