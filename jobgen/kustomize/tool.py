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

from jobgen.engine.store import keep
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


def use_tool(tree: SourceTree, own: Build, tool: Tool) -> Build:
    """Return the build of a tool with the locations of an own build; the own build where the tool cannot be used.

    It is not used if a part of the build is not local, nor if the kustomization is already known to fail.
    """
    folder = tree.folder if isinstance(tree, FolderTree) and isinstance(tree.folder, Path) else None
    fails = any(
        each.severity is Severity.ERROR or each.rule == "kustomization-load-restricted" for each in own.findings
    )
    if folder is None or set(own.unbuilt) - own.needs_tool or fails:
        return own
    # A tool reads what is saved, and an editor has drafts.
    if not all(_is_saved(folder / path, tree.read(path).content) for path in own.files):
        return own
    found: list[Build] = []

    def compare() -> bytes | None:
        """Note that the tool builds the same objects; the objects are never kept."""
        found.append(_build(tree, own, tool, folder))
        built, known = ([each.data for each in build.objects] for build in (found[0], own))
        return b"same" if found[0].by == tool.name and built == known else None

    contents = [part for path in sorted(own.files) for part in (path, tree.read(path).content)]
    version = (tool.path, str(os.stat(tool.path).st_mtime_ns), own.root)
    keep("kustomize", (*version, *contents), compare)
    return found[0] if found else own._replace(unbuilt=(), by=tool.name, needs_tool=frozenset())


def _is_saved(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _build(tree: SourceTree, own: Build, tool: Tool, folder: Path) -> Build:
    content, message = _run(tool, (folder / posixpath.dirname(own.root)).resolve())
    if content is None:
        # Without a message, the tool did not run: that says nothing about the kustomization.
        failed = [_report(tree, own, tool, message, str(folder.resolve()))] if message else []
        return own._replace(findings=(*own.findings, *failed))
    source = read(content, own.root)
    if any(each.severity is Severity.ERROR and each.rule == "yaml-syntax" for each in source.findings):
        return own
    objects = _transfer([document.data for document in source.documents], own)
    return own._replace(objects=objects, unbuilt=(), by=tool.name, needs_tool=frozenset())


def _run(tool: Tool, folder: Path) -> tuple[bytes | None, str]:
    """Run a tool on a folder; return what it prints, or None and its message, which is empty if it did not end."""
    command = [tool.path, "build" if tool.name == "kustomize" else "kustomize", str(folder)]
    # Neither settings of the user nor the network have a part in a build.
    environment = {"PATH": os.defpath, "HOME": "/nonexistent", "KUBERC": "off", "GOMEMLIMIT": str(_MAX_MEMORY // 2)}
    try:
        done = subprocess.run(  # noqa: S603 -- a fixed command
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            env=environment,
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


def _report(tree: SourceTree, own: Build, tool: Tool, message: str, folder: str) -> Finding:
    lines = [line for line in message.replace(f"{folder}/", "").strip().splitlines() if line and line[0] != "#"]
    reason = _NOISE.sub("", lines[-1] if lines else "it said nothing")[:300].replace("`", "'")
    named = sorted((each for each in own.files if each in message and each != own.root), key=len)
    location = Location(named[-1] if named and tree.exists(named[-1]) else own.root)
    shown = f"{tool.name} cannot build this kustomization: {reason}; correct it"
    return Finding("kustomize-build-fails", "gitops", Severity.ERROR, shown, location)


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
        objects.append(found._replace(data=data, traced=traced))
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
