"""Names of volumes that a pod does not have: misspelled ones, and those of what a volume holds."""

from __future__ import annotations

from jobgen.check.admission.fields import Validation, list_mappings
from jobgen.check.admission.names import is_dns_label
from jobgen.k8s.nodes import as_text, get_path
from jobgen.model.finding import FixStep
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest, suggest_value

_NAMED_SOURCES = (
    ("persistentVolumeClaim", "claimName", "claim"),
    ("configMap", "name", "ConfigMap"),
    ("secret", "secretName", "Secret"),
)
"""The fields of a volume that name an object, and what that is."""


def report_missing_volume(name: str, place: At, pod: Validation) -> None:
    """Report a volume that the pod lacks; its claim or ConfigMap may have this name instead of the volume."""
    message, known = Sentence("the pod has no volume `{}`", name), list(pod.volumes)
    sources = [
        (volume, what)
        for volume, source in pod.volumes.items()
        for field, key, what in _NAMED_SOURCES
        if as_text(get_path(source, field, key)) == name
    ]
    if len(sources) == 1:
        meant, what = sources[0]
        message += f", which is the name of the {what} of volume `{meant}`; write `{meant}`"
        pod.report("unknown-volume", message, place, ((FixStep("set", place, meant),), True), meant=meant)
        return
    meant = find_closest(name, known)
    if meant and not is_dns_label(meant) and _fold(meant) == _fold(name):
        # The name of the volume is reported.
        return
    meant = meant or _find_unmounted(name, pod)
    message += ask_for(meant) or "; add it to the pod"
    pod.report("unknown-volume", message, place, suggest_value(place, known), meant=meant)


def _find_unmounted(name: str, pod: Validation) -> str:
    """Return the one volume that no container mounts, if its name is the beginning of another, or the reverse."""
    containers = [each for key in ("containers", "initContainers") for each in list_mappings(pod.spec.get(key))]
    mounted = {as_text(mount.get("name")) for each in containers for mount in list_mappings(each.get("volumeMounts"))}
    left = [volume for volume in pod.volumes if volume not in mounted]
    is_alike = len(left) == 1 and (name.startswith(left[0]) or left[0].startswith(name))
    return left[0] if is_alike else ""


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-")
