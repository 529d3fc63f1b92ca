"""How much room a job's name has: operators append roles and numbers to it for pods, Services and JobSets."""

from __future__ import annotations

from jobgen.k8s.objects import Manifest, as_text, get_path

ROOM = 63
"""The longest name that a Service, or a label's value, may have."""


def longest_suffix(manifest: Manifest) -> str:
    """The longest end that a pod's name will have."""
    kind = manifest.kind
    assert kind is not None
    if kind.demands.names == "label":
        return ""
    runtime = kind.demands.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name")))
    ends = [runtime.name_suffix] if runtime else []
    for role in manifest.roles:
        index = str(max(role.count - 1, 0))
        if "{role}" in kind.name_suffix:
            ends.append(kind.name_suffix.replace("{role}", role.spelling.lower()).replace("{index}", index))
        elif not role.described or not role.described.launches:
            ends.append(kind.name_suffix.replace("{index}", index))
    return max(ends, key=len, default="")
