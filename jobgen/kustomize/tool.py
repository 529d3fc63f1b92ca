"""Build a kustomization with kustomize or kubectl, and give its values the locations of jobgen's own build."""

from __future__ import annotations

import json
import os
import posixpath
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.kustomize.builder import Build
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import identify
from jobgen.kustomize.tree import FolderTree, SourceTree, Tool
from jobgen.model.data import (
    Location,
    Node,
    TracedKey,
    TracedList,
    TracedMapping,
    TracedScalar,
    location_of,
    untraced,
    value_of,
)
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_STDIN_BYTES
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import BuiltObject
from jobgen.yamlio.read import read

_MAX_MEMORY = 4 * 1024**3
# What comes before the reason in the messages of kustomize, also several times.
_NOISE = lazy_pattern(
    r"(?:error: |Error: |accumulating (?:resources|components): |accumulateFile |accumulation err='[^']*': )+"
)
# A line of kubectl's log, since 1.37.
_LOGGED = lazy_pattern(r'E\d{4} \S+ +\d+ \S+\] "command failed" err=("(?:[^"\\]|\\.)*")')
# The fields by which items of lists are compared, the best first.
_NAMES = ("name", "mountPath", "containerPort", "port", "key", "topologyKey", "ip")


class Answer(NamedTuple):
    """What a tool said about a kustomization."""

    objects: list[dict[str, Any]] | None = None
    """None if it built nothing."""
    reason: str = ""
    """Why it refuses to build the kustomization; empty if it did not come to an end."""
    location: Location = Location("")
    """The file that the reason names."""


def use_tool(tree: SourceTree, own: Build, tool: Tool) -> Build:
    """Return the build of a tool with the locations of an own build; the own build where the tool cannot be used."""
    answer = ask_tool(tree, own, tool)
    if answer is not None and answer.reason:
        message = f"{tool.name} cannot build this kustomization: {answer.reason}; correct it"
        failed = Finding("kustomize-build-fails", "gitops", Severity.ERROR, message, answer.location)
        return own._replace(findings=(*own.findings, failed))
    # A tool that did not come to an end says nothing about the kustomization.
    if answer is None or answer.objects is None:
        return own
    message = f"{own.unbuilt[0]}, so {tool.name} built this kustomization"
    note = Finding("tool-built-kustomization", "meta", Severity.INFO, message, Location(own.root))
    return Build(own.root, _transfer(answer.objects, own), (*own.findings, note), files=own.files, by=tool.name)


def ask_tool(tree: SourceTree, own: Build, tool: Tool) -> Answer | None:
    """Build a kustomization with a tool; None if its files are in a commit, or not saved yet."""
    folder = tree.folder if isinstance(tree, FolderTree) else None
    # A tool reads what is saved; the language server and `--fix` have drafts.
    if not isinstance(folder, Path) or not all(_is_saved(folder / path, tree.read(path).content) for path in own.files):
        return None
    content, message = _run(tool, (folder / posixpath.dirname(own.root)).resolve())
    if content is None:
        return _read_refusal(tree, own, message.replace(f"{folder.resolve()}/", "")) if message else Answer()
    source = read(content, own.root)
    if any(each.severity is Severity.ERROR and each.rule == "yaml-syntax" for each in source.findings):
        return Answer()
    return Answer([document.data for document in source.documents])


def _is_saved(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _read_refusal(tree: SourceTree, own: Build, message: str) -> Answer:
    lines = [line for line in message.strip().splitlines() if line and line[0] != "#"]
    reason = _NOISE.sub("", lines[-1] if lines else "it said nothing")[:300].replace("`", "'")
    named = sorted((each for each in own.files if each in message and each != own.root), key=len)
    return Answer(None, reason, Location(named[-1] if named and tree.exists(named[-1]) else own.root))


# Neither settings of the user nor the network have a part in a build. jobgen starts no tool for what is remote; if it
# takes an address for something else, Git refuses it, and a proxy that does not exist answers nothing.
_ENVIRONMENT = {
    "PATH": os.defpath,
    "HOME": "/nonexistent",
    "KUBERC": "off",
    "GOMEMLIMIT": str(_MAX_MEMORY // 2),
    "GIT_ALLOW_PROTOCOL": "none",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
}


def _run(tool: Tool, folder: Path) -> tuple[bytes | None, str]:
    """Run a tool on a folder; return what it prints, or None and its message, which is empty if it did not end."""
    command = [tool.path, "build" if tool.name == "kustomize" else "kustomize", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 -- a fixed command
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            env=_ENVIRONMENT,
            cwd=folder,
            preexec_fn=_limit_memory if os.name == "posix" else None,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None, ""
    if done.returncode < 0 or len(done.stdout) > MAX_STDIN_BYTES:
        return None, ""
    if done.returncode:
        return None, _read_error(done.stderr.decode("utf-8", "replace")) or "it said nothing"
    return done.stdout, ""


def _read_error(text: str) -> str:
    """Return an error as kubectl says it; newer ones write it as a line of a log."""
    logged = _LOGGED.search(text)
    try:
        return f"error: {json.loads(logged[1])}" if logged else text
    except ValueError:
        return text


def _limit_memory() -> None:
    # Imported here: Windows does not have it.
    import resource as limits

    # Go reserves far more addresses than it uses, so the limit is that of data.
    limits.setrlimit(limits.RLIMIT_DATA, (_MAX_MEMORY, _MAX_MEMORY))


def _transfer(built: Sequence[dict[str, Any]], own: Build) -> tuple[BuiltObject, ...]:
    """Give the objects of a tool the locations of those that jobgen built."""
    known: dict[Any, list[BuiltObject]] = defaultdict(list)
    for each in own.objects:
        known[identify(each.data)].append(each)
    matched = [known[identify(data)].pop(0) if known[identify(data)] else None for data in built]
    # A name may differ, for example by its hash.
    rest: dict[str, list[BuiltObject]] = defaultdict(list)
    for each in (each for left in known.values() for each in left):
        rest[identify(each.data).kind].append(each)
    objects: list[BuiltObject] = []
    for data, like in zip(built, matched, strict=True):
        others = rest[identify(data).kind]
        found = like or (others.pop(0) if others else BuiltObject({}, {}, own.root, 0, Location(own.root)))
        traced = found.traced if found.data == data else _locate(data, found.traced, found.location, "")
        objects.append(found._replace(data=data, located=traced))
    return tuple(objects)


def _locate(value: Any, like: Node, location: Location, layer: str) -> Any:
    """Return a value with the locations of another one; where that has none, with those of the nearest one above."""
    location = location_of(like) or location
    layer = getattr(like, "layer", "") or layer
    if isinstance(value, dict):
        if not value:
            return TracedMapping(location, layer)
        others: Mapping[str, Node] = like if isinstance(like, dict) else {}
        keys = {key: key for key in others if type(key) is TracedKey}
        located: dict[str, Any] = {}
        for name, item in value.items():
            key = keys.get(name) or TracedKey.at(name, location, layer)
            located[key] = _locate(item, others.get(name), key.location, layer)
        return located
    if isinstance(value, list):
        found = like if isinstance(like, list) else []
        items = [_locate(item, _match_item(found, at, item), location, layer) for at, item in enumerate(value)]
        return TracedList(items, location, layer)
    if type(like) is TracedScalar and type(like.value) is type(value) and like.value == value:
        return like
    overridden = like.overridden if type(like) is TracedScalar else None
    return TracedScalar(value, location, layer, overridden)


def _match_item(items: Sequence[Node], at: int, item: Any) -> Node:
    """Return the item of a list like another: by a name, else by its value, else by its position."""
    name = next((each for each in _NAMES if isinstance(item, dict) and each in item), None)
    if name is not None:
        named = (each for each in items if isinstance(each, dict) and _is_same(each.get(name), item[name]))
        return next(named, None)
    same = next((each for each in items if not isinstance(each, (dict, list)) and value_of(each) == item), None)
    return same if same is not None else items[at] if at < len(items) else None


def _is_same(one: Node, other: Any) -> bool:
    return one is not None and text_of(one) == text_of(other) and untraced(one) == untraced(other)
