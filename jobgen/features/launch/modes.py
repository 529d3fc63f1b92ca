"""Files of ConfigMaps and Secrets that are started and that no user can execute, which is the default."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.values import Fault
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Container
from jobgen.k8s.shell.commands import Script, find_script
from jobgen.k8s.shell.steps import read_words
from jobgen.model.place import At

_MODE = 0o644  # of files in volumes, by default


def check_mode(container: Container) -> Iterator[Fault]:
    """Report a command that is such a file, or the commands of its script that are."""
    if container.command:
        yield from _check_path(container, as_text(container.command[0]), At(container.command, 0))


def check_commands(container: Container) -> Iterator[tuple[Script, int, Fault]]:
    """Yield the commands of a script that are such files, each with its line."""
    script = find_script(container)
    if script is None:
        return
    starts = [words[0] for words in read_words(script.text)]
    # A shell goes on behind a command that fails.
    is_error = len(starts) == 1
    for path in dict.fromkeys(each for each in starts if each.startswith("/")):
        for fault in _check_path(container, path, script.place):
            lines = enumerate(script.text.split("\n"), 1)
            line = next((number for number, line in lines if path in line), 1)
            yield script, line, fault._replace(is_error=is_error)


def _check_path(container: Container, path: str, place: At) -> Iterator[Fault]:
    mounts = [as_mapping(each) for each in as_list(container.data.get("volumeMounts"))]
    # A mount of one file has the path of the file.
    mounts = [each for each in mounts if f"{path}/".startswith(f"{as_text(each.get('mountPath')).rstrip('/')}/")]
    if not mounts:
        return
    mount = max(mounts, key=lambda each: len(as_text(each.get("mountPath"))))
    inner = path.removeprefix(as_text(mount.get("mountPath"))).strip("/") or as_text(mount.get("subPath"))
    for volume in container.pod.volumes:
        source = as_mapping(volume.get("configMap") or volume.get("secret"))
        if as_text(volume.get("name")) != as_text(mount.get("name")) or not source:
            continue
        items = [as_mapping(each) for each in as_list(source.get("items"))]
        own = next((each.get("mode") for each in items if as_text(each.get("path")) == inner), None)
        mode = as_integer(source.get("defaultMode", _MODE) if own is None else own)
        if mode is not None and not mode & 0o111:
            message = f"`{path}` is a file of a volume with mode `{mode:04o}`, which no user can execute"
            shell = "python" if path.endswith(".py") else "sh"
            start = (
                f"`[{shell}, {path}]`" if place.holder is container.command and place.key == 0 else f"`{shell} {path}`"
            )
            program = "Python" if shell == "python" else "a shell"
            advice = f"set `defaultMode: 0755`, or start it with {program}: {start}"
            # A spec has modes as texts, so that no reader takes them for decimal numbers.
            in_spec = ("`defaultMode: 0755`", '`defaultMode: "0755"`')
            yield Fault(place, f"{message} (`permission denied`); {advice}", in_spec=in_spec)
