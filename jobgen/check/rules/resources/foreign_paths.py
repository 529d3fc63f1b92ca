"""Paths of another operating system."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_PATH = lazy_pattern(r"(?:\A|(?<=[=\s\"']))[A-Za-z]:\\[^\s\"'\n]*")
_SYSTEM = "kubernetes.io/os"


@rule(
    "container", WARNING, fields=("args", "command", "env", "volumeMounts", "workingDir"), words=(":\\", "workingDir")
)
def foreign_path(container: Container) -> Iterator[Violation]:
    r"""A path of Windows, such as `C:\data`, in a container that runs on Linux.

    Linux takes it for the name of a file in the working directory, with a colon and a backslash in it. Containers for
    Windows are not reported: those of pods with `os: {name: windows}`, or with a node selector that says so.

    A `workingDir` without `/` at its start is a path that the runtime refuses: the container never starts.

    Write the path in the container, such as `/data`.

    When to turn it off: in a Linux container that runs Wine, or for an argument that another system evaluates,
    accept it on that item with the reason.
    """
    spec, folder = container.pod.spec, as_text(container.data.get("workingDir"))
    if folder and folder[0] not in "/$" and ":" not in folder and "{" not in folder:
        message = Sentence("`workingDir` is `{}`, and must begin with `/` (`Cwd must be an absolute path`)", folder)
        # Only a shell makes a path of `~`.
        home, _, below = folder.partition("/")
        path = "/".join(filter(None, ("/root", below))) if home == "~" else f"/workspace/{folder.removeprefix('./')}"
        yield Violation(
            At(container.data, "workingDir"), Sentence("{}; write the whole path, such as `{}`", message, path)
        )
    system = as_text(get_path(spec, "os", "name")) or as_text(as_mapping(spec.get("nodeSelector")).get(_SYSTEM))
    if system == "windows" or "windows" in container.image:
        return
    mounts = (At(mount, "mountPath") for mount in container.volume_mounts if "mountPath" in mount)
    for place in (*container.value_places, *mounts):
        found = _PATH.search(as_text(place.node))
        if found is not None:
            meant = found[0][2:].replace("\\", "/").rstrip("/")
            message = Sentence("`{}` is a path of Windows, and the container runs on Linux", found[0])
            yield Violation(
                place, Sentence("{}; write the path in the container, such as `{}`", message, meant or "/data")
            )
