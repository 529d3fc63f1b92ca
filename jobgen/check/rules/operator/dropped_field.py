"""Fields whose feature gate is off."""

from collections.abc import Iterator

from jobgen.check.operators.checks import is_gate_on
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.feature_gates import find_nodes, list_dropped
from jobgen.k8s.kinds import BUILTIN_GROUPS, format_release, get_group, parse_release
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of


@rule("manifest", WARNING)
def dropped_field(manifest: Manifest) -> Iterator[Violation]:
    """A field that the API server drops because its feature gate is off by default in the cluster's release.

    The object is accepted, and runs as if the field were not there: with Kubernetes 1.30, a mount with
    `recursiveReadOnly: Enabled` is not read-only below its top.

    Remove the field, or update the cluster. If the gate is on in your cluster, name it in `cluster.featureGates`.
    """
    release = parse_release(manifest.cluster.kubernetes)
    is_own = get_group(as_text(manifest.object.get("apiVersion"))) in BUILTIN_GROUPS
    places: list[tuple[Node, str]] = [(pod.spec, "") for pod in manifest.pods]
    places += [(dict(manifest.object), as_text(manifest.object.get("kind")))] if is_own else []
    for holder, kind in places:
        for field in list_dropped(kind, release):
            if is_gate_on(manifest, field.gate):
                continue
            for key, value in find_nodes(holder, field.path):
                if value_of(value) not in (None, field.default):
                    shown = f"`{field.gate}` is off by default in Kubernetes {format_release(release)}"
                    advice = "remove it, or name the gate in `cluster.featureGates`"
                    yield Violation(key, f"the API server drops `{key}`, because the feature gate {shown}; {advice}")
