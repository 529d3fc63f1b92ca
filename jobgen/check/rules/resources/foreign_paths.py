"""Paths of another operating system."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern

_PATH = lazy_pattern(r"(?:\A|(?<=[=\s\"']))[A-Za-z]:\\[^\s\"'\n]*")
_SYSTEM = "kubernetes.io/os"


@rule("container", WARNING, fields=("args", "command", "env", "volumeMounts"), words=(":\\",))
def foreign_path(container: Container) -> Iterator[Violation]:
    r"""A path of Windows, such as `C:\data`, in a container that runs on Linux.

    Linux takes it for the name of a file in the working directory, with a colon and a backslash in it. Containers for
    Windows are not reported: those of pods with `os: {name: windows}`, or with a node selector that says so.

    Write the path in the container, such as `/data`.
    """
    spec = container.pod.spec
    system = as_text(get_path(spec, "os", "name")) or as_text(as_mapping(spec.get("nodeSelector")).get(_SYSTEM))
    if system == "windows" or "windows" in container.image:
        return
    values = (entry.get("value") for _, entry in container.env)
    mounts = (mount.get("mountPath") for mount in container.volume_mounts)
    for node in (*container.command_line, *values, *mounts):
        found = _PATH.search(as_text(node))
        if found is not None:
            meant = found[0][2:].replace("\\", "/").rstrip("/")
            message = f"`{found[0]}` is a path of Windows, and the container runs on Linux"
            yield Violation(node, f"{message}; write the path in the container, such as `{meant or '/data'}`")
