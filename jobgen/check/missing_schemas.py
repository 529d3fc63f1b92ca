"""Kinds without a schema: those that are misspelled, renamed or have no CRD, and how to add the schema of others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from jobgen.check.admission.names import is_dns_subdomain
from jobgen.model.limits import MAX_COMPARED
from jobgen.model.suggest import find_closest
from jobgen.repo.shipped import list_shipped_schemas
from jobgen.schema.shipped_kinds import is_shipped_kind, list_shipped_kinds, list_versions

_CLOSE_KIND = 0.9


@cache
def _list_known_kinds() -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
    """Return the versions and kinds of each group of Kubernetes and of operators that run jobs, and those of a kind."""
    by_group: dict[str, set[str]] = {}
    by_kind: dict[str, set[str]] = {}
    for each in list_shipped_kinds():
        group, _, version = each.api_version.rpartition("/")
        by_group.setdefault(group, set()).update((version, each.name))
        by_kind.setdefault(each.name, set()).add(group)
    return by_group, by_kind


@lru_cache(maxsize=256)
def _list_foreign_groups(kind: str) -> list[str]:
    """Return the groups of other operators that have a kind."""
    return [group for group in list_shipped_schemas("foreign") if any(list_versions(f"{group}/v1", kind))]


def find_misspelled(api_version: str, kind: str) -> tuple[str, str, str] | None:
    """Return what is wrong with a kind or a group that resembles a known one, the field at fault and the right value.

    Operators that run jobs have no kinds but those that are known, and no other group with their kinds has a name like
    theirs. The same holds of the groups of other operators.
    """
    group, _, version = api_version.rpartition("/")
    by_group, by_kind = _list_known_kinds()
    if group in by_group:
        names = by_group[group]
        close = find_closest(kind, sorted(names), _CLOSE_KIND)
        is_other = version in names and close not in ("", kind)
        return (f"`{group}` has no kind `{kind}`; did you mean `{close}`?", "kind", close) if is_other else None
    plain = group.strip(_QUOTES).lower()
    groups = [each for each in by_kind.get(kind, ()) if "." in each]
    groups += [each for each in _list_foreign_groups(kind) if each != group]
    near = next((each for each in groups if len(plain) <= MAX_COMPARED and _is_near(plain, each)), "")
    if not near:
        return None
    right = f"{near}/{version.strip(_QUOTES).lower()}"
    return f"no API server has the group of `{api_version}`; did you mean `{right}`?", "apiVersion", right


def _is_near(group: str, known: str) -> bool:
    """Return True for a group with one slip, and for one whose last part is another or is missing."""
    # Imported late: most kinds have a schema.
    from jobgen.model.meant import count_changes

    name, _, end = known.rpartition(".")
    is_of_another_end = "." in name and end in _ENDS and group in (name, *(f"{name}.{other}" for other in _ENDS))
    return is_of_another_end or count_changes(group, known) <= 1


_ENDS = ("com", "dev", "io", "net", "org", "sh")
"""The ends of names that people mistake for each other."""


# The versions that the kinds of operators once had, in releases that jobgen does not know.
_EARLIER_VERSIONS = {
    "batch/Job": ("v2alpha1",),
    "jobset.x-k8s.io/JobSet": ("v1alpha1",),
    "kubeflow.org/MPIJob": ("v1alpha1", "v1alpha2"),
    "kubeflow.org/MXJob": ("v1alpha1", "v1beta1"),
    "kubeflow.org/PyTorchJob": ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2"),
    "kubeflow.org/TFJob": ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2"),
    "ray.io/RayCluster": ("v1alpha1",),
    "ray.io/RayJob": ("v1alpha1",),
    "ray.io/RayService": ("v1alpha1",),
}


def describe_version(api_version: str, kind: str, known: str) -> str:
    """Say what is wrong with a version of a kind that has the version `known`: it is old, or the kind never had it."""
    group, _, version = api_version.rpartition("/")
    if version in _EARLIER_VERSIONS.get(f"{group}/{kind}", ()):
        return f"`{api_version}` is an old version of {kind}; use `{known}`"
    if is_shipped_kind(known, kind):
        return f"`{kind}` has no version `{version}`; write `{known}`"
    return f"`{api_version}` is another version of {kind}; use `{known}`"


_QUOTES = "“”‘’\"' "


# Groups of OpenShift's own API server, which no CRD defines.
WITHOUT_CRDS = frozenset(
    f"{name}.openshift.io" for name in "apps authorization build image oauth project template user".split()
)
# API groups that projects have renamed, and no longer serve.
RENAMED_GROUPS = {
    "ark.heptio.com": "velero.io",
    "authentication.istio.io": "security.istio.io",
    "certmanager.k8s.io": "cert-manager.io",
    "cluster.k8s.io": "cluster.x-k8s.io",
    "contour.heptio.com": "projectcontour.io",
    "helm.fluxcd.io": "helm.toolkit.fluxcd.io",
    "keda.k8s.io": "keda.sh",
    "kubernetes-client.io": "external-secrets.io",
    "longhorn.rancher.io": "longhorn.io",
    "networking.x-k8s.io": "gateway.networking.k8s.io",
    "nfd.kubernetes.io": "nfd.k8s-sigs.io",
    "rbac.istio.io": "security.istio.io",
    "scheduling.incubator.k8s.io": "scheduling.volcano.sh",
    "scheduling.sigs.dev": "scheduling.volcano.sh",
    "serving.kubeflow.org": "serving.kserve.io",
    "traefik.containo.us": "traefik.io",
}
# Gatekeeper names the CRDs of its constraints by their kinds.
_LOWER_PLURALS = frozenset(("constraints.gatekeeper.sh",))


def suggest_import(group: str, kind: str) -> str:
    """The commands that add the schema of a kind, unless its names cannot be those of a CRD."""
    lower = kind.lower()
    if group in _LOWER_PLURALS:
        plural = lower
    elif lower.endswith(("s", "x", "z", "ch", "sh")):
        plural = f"{lower}es"
    elif lower.endswith("y") and not lower.endswith(("ay", "ey", "oy", "uy")):
        plural = f"{lower[:-1]}ies"
    else:
        plural = f"{lower}s"
    if not is_dns_subdomain(f"{plural}.{group}") or "." not in group:
        return "; add its CRD with `jobgen schema import CRD.yaml`"
    return f"; run `kubectl get crd {plural}.{group} -o yaml > {lower}.yaml` and `jobgen schema import {lower}.yaml`"
