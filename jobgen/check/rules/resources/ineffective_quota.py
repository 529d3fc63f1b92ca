"""Resources of a quota that Kubernetes does not count."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest

_COUNTED = (".storageclass.storage.k8s.io/", ".deviceclass.resource.k8s.io/")


@rule("manifest", WARNING, kinds=("ResourceQuota",))
def ineffective_quota(manifest: Manifest) -> Iterator[Violation]:
    """A device or other extended resource in a ResourceQuota without the prefix `requests.`.

    Kubernetes counts extended resources such as `nvidia.com/gpu` only under their requests. It accepts another key and
    never enforces it, so the namespace has no limit.

    Write `requests.nvidia.com/gpu`.
    """
    for key in as_mapping(manifest.spec.get("hard")):
        if "/" not in key or key.startswith(("requests.", "count/")) or any(part in key for part in _COUNTED):
            continue
        name = f"requests.{key.removeprefix('limits.')}"
        yield Violation(key, f"a quota for `{key}` is never enforced; write `{name}`")
