"""What pods can be told in a kind that has no pod templates of its own."""

from __future__ import annotations

from jobgen.convert.migrate.draft import Draft, Path
from jobgen.model.data import Data
from jobgen.spec.normalize import JOB_FIELDS

# Where each of our fields ends up in a pod template.
_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "serviceAccount": (("pod", "serviceAccountName"),),
    "volumes": (("pod", "volumes"), ("container", "volumeMounts")),
    "shm": (("pod", "volumes"), ("container", "volumeMounts")),
    "securityContext": (("pod", "securityContext"), ("container", "securityContext")),
    "labels": (("metadata", "labels"),),
    "annotations": (("metadata", "annotations"),),
    **{name: (("pod", name),) for name in ("nodeSelector", "tolerations", "affinity", "imagePullSecrets")},
    **{name: (("container", name),) for name in ("imagePullPolicy", "workingDir", "envFrom", "ports")},
    **{name: (("container", name),) for name in ("image", "command", "args", "env", "resources")},
}
_KEPT = frozenset(("roles", "manifest", "podTemplate", "containerName", "replicas", "restartPolicy"))


def parts(draft: Draft) -> None:
    """Fields of pods that can only be said in a runtime."""
    if draft.target.template is None:
        return
    for path, holder in list(draft.holders()):
        for field in list(holder):
            if field in JOB_FIELDS or field in _KEPT:
                continue
            if not all(_takes(draft, *part) for part in _PARTS.get(field, (("", ""),))):
                draft.lose((*path, field))
        if "containerName" in holder:
            draft.lose((*path, "containerName"))
        if isinstance(holder.get("podTemplate"), dict):
            _template(draft, (*path, "podTemplate"), holder["podTemplate"])


def _takes(draft: Draft, part: str, name: str) -> bool:
    template = draft.target.template
    assert template is not None, "asked by parts"
    shape = template.shapes[-1]
    if part == "metadata":
        return shape.metadata is not None
    return name in (shape.pod_fields if part == "pod" else {*template.container, *shape.container_fields})


def _template(draft: Draft, path: Path, template: dict[str, Data]) -> None:
    for key in list(template):
        spec = template[key]
        if key == "metadata" and _takes(draft, "metadata", key):
            continue
        if key != "spec" or not isinstance(spec, dict):
            draft.lose((*path, key))
            continue
        for field in list(spec):
            if field != "containers" and not _takes(draft, "pod", field):
                draft.lose((*path, key, field))
        if "containers" in spec:
            draft.lose((*path, key, "containers"), "only the runtime's template can say more of containers")
