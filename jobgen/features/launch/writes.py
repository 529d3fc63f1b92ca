"""Commands of scripts that write to volumes which are mounted read-only: ConfigMaps, Secrets, and `readOnly: true`.

Only paths that are written in full are looked at, and only commands whose failure nothing expects.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from jobgen.features.launch.shell.mistakes import Mistake
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.k8s.shell.syntax import parse_all
from jobgen.k8s.shell.tree import (
    Assignment,
    Case,
    Command,
    For,
    Group,
    If,
    Literal,
    Loop,
    Redirection,
    Simple,
    Word,
)
from jobgen.k8s.shell.tree import Script as Commands
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_ALWAYS = ("configMap", "secret", "projected", "downwardAPI")
_TO_FILE = frozenset((">", ">>", ">|", "&>", "&>>"))
_LAST = frozenset(("cp", "install", "ln", "mv", "rsync"))
_ALL = frozenset(("chmod", "chown", "tee", "touch", "truncate"))
_IN_PLACE = lazy_pattern(r"-[a-zA-Z]*i|--in-place")


class _Mount(NamedTuple):
    path: str
    reason: str
    """Why it is read-only; empty if it is not."""


def find_writes(container: Container, text: str) -> Iterator[Mistake]:
    """Yield the commands of a script that certainly write to a volume that is read-only."""
    mounts = sorted(_list_mounts(container), key=lambda mount: -len(mount.path))
    if not [mount for mount in mounts if mount.reason and mount.path in text] or parse_all(text).failure is not None:
        return
    seen: set[str] = set()
    for command in _list_commands(parse_all(text).script):
        name = _read(command.words[0]) if command.words else ""
        for path in _list_written(name, command):
            normal = posixpath.normpath(path)
            mount = next((each for each in mounts if f"{normal}/".startswith(f"{each.path.rstrip('/')}/")), None)
            if mount is None or not mount.reason or path in seen:
                continue
            seen.add(path)
            lines = enumerate(text.split("\n"), 1)
            line = next((number for number, each in lines if path in each and name in each), 0)
            if line:
                message = f"`{name}` writes to `{path}`, but `{mount.path}` is {mount.reason} (`Read-only file system`)"
                yield Mistake(line, f"{message}; write to another folder, or change a copy", is_error=False)


def _list_mounts(container: Container) -> Iterator[_Mount]:
    volumes = {as_text(volume.get("name")): volume for volume in container.pod.volumes}
    for mount in map(as_mapping, as_list(container.data.get("volumeMounts"))):
        volume = volumes.get(as_text(mount.get("name")), {})
        source = next((name for name in _ALWAYS if name in volume), "")
        is_read_only = mount.get("readOnly") is True
        is_read_only = is_read_only or get_path(volume, "persistentVolumeClaim", "readOnly") is True
        reason = f"a volume of a {source[:1].upper()}{source[1:]}" if source in ("configMap", "secret") else ""
        reason = reason or ("a volume that is read-only" if source or is_read_only else "")
        path = as_text(mount.get("mountPath"))
        if path.startswith("/"):
            yield _Mount(posixpath.normpath(path), reason)


def _list_commands(script: Commands) -> Iterator[Simple]:
    """Yield the commands whose failure no other command expects: none of conditions, and none before `||`."""
    for and_or in script:
        if any(operator == "||" for operator, _ in and_or.pipelines):
            continue
        for _, pipeline in and_or.pipelines:
            for command in () if pipeline.negated else pipeline.commands:
                yield from _open(command)


def _open(command: Command) -> Iterator[Simple]:
    if isinstance(command, Simple):
        yield command
    elif isinstance(command, If):
        for condition, body in command.branches:
            words = [word for each in _list_commands(condition or ()) for word in each.words]
            # `[ -w FILE ]` tests whether the file can be written.
            if (Literal("-w"),) not in words:
                yield from _list_commands(body)
    elif isinstance(command, Case):
        for _, body, _ in command.branches:
            yield from _list_commands(body)
    elif isinstance(command, (For, Loop, Group)):
        yield from _list_commands(command.body)


def _read(word: Word | Assignment) -> str:
    """Return the text of a word; empty if it is not known before the script runs."""
    if isinstance(word, Assignment):
        return ""
    texts = [part.text if isinstance(part, Literal) else "" for part in word]
    return "".join(texts) if all(texts) else ""


def _list_written(name: str, command: Simple) -> Iterator[str]:
    words = [*map(_read, command.words[1:])]
    arguments = [word for word in words if not word.startswith("-")]
    yield from _list_paths(map(_read_target, command.redirections))
    if name in _ALL or (name == "mkdir" and not any(word.startswith("-") and "p" in word for word in words)):
        yield from _list_paths(arguments)
    elif name in _LAST and len(arguments) > 1 and "-t" not in words:
        yield from _list_paths(arguments[-1:])
    elif name == "sed" and any(map(_IN_PLACE.match, words)):
        yield from _list_paths(arguments[1:])


def _read_target(redirection: Redirection) -> str:
    return _read(redirection.target) if redirection.operator in _TO_FILE else ""


def _list_paths(texts: Iterator[str] | list[str]) -> Iterator[str]:
    yield from (text for text in texts if text.startswith("/") and not text.startswith(("/dev/", "/proc/")))
