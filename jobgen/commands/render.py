"""`jobgen render`: the manifests of jobs as a stream, or as a tree of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from jobgen import catalogue, output, repo
from jobgen.catalogue import Catalogue
from jobgen.commands import Code, Result, counted, environments, stopped
from jobgen.emit import to_json, to_yaml
from jobgen.model import Finding, Identity, Mark, Related, Severity
from jobgen.output import Drift, UnfinishedError
from jobgen.pipeline import Run
from jobgen.report import text
from jobgen.schema import nearest

_LONGEST_FILE_NAME = 255
"""Bytes that every common file system takes in one name."""


class _Text(NamedTuple):
    """A rendered object as text, with the path that it has in the tree of its environment."""

    env: str
    path: str
    body: str
    identity: Identity
    mark: Mark


class _Tree(NamedTuple):
    """A folder and what belongs in it: files by environment, all of each environment's or only some."""

    folder: Path
    wanted: dict[str, dict[str, str]]
    partial: bool


def render(
    root: Path,
    jobs: Sequence[str],
    envs: Sequence[str],
    folder: Path | None,
    *,
    check: bool,
    format_: str,
    progress: Callable[[int, int], None],
) -> Result:
    """Render the jobs that are wanted; nothing is printed or written if there are errors."""
    if check and folder is None:
        return stopped(Code.USAGE, "--check compares a tree; name it with -o")
    shelf = catalogue.load(root)
    chosen = environments(shelf, envs)
    if isinstance(chosen, Result):
        return chosen
    if folder is not None and any(repo.is_source(root, folder / env) for env in chosen):
        return stopped(Code.USAGE, f"`{folder}` holds what jobgen reads; write the tree elsewhere")
    run = Run(shelf, chosen, _matcher(jobs), to_json if format_ == "json" else to_yaml, progress)
    texts = _texts(run, format_)
    run.findings += _clashes(texts) if folder else ()
    said = text.render(run.findings)
    if run.failed:
        return stopped(Code.ERRORS, f"{text.summary(run.findings)}; nothing was rendered", said)
    lacking = _lacking(run, jobs, texts)
    if lacking:
        return stopped(Code.NOTHING, lacking, said)
    if folder is None:
        return Result(Code.FINE, _stream(texts, format_), said)
    wanted = {env: {one.path: one.body for one in texts if one.env == env} for env in chosen}
    abandoned = {} if jobs or envs else _abandoned(folder, shelf)
    done = (_check if check else _write)(_Tree(folder, {**abandoned, **wanted}, bool(jobs)))
    return done._replace(err=said + done.err)


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    return lambda name: not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _texts(run: Run, format_: str) -> list[_Text]:
    """All objects, in an order that does not depend on where their jobs stand."""
    texts = []
    for made in run:
        namespace = made.identity.namespace or "default"
        path = f"{namespace}/{made.identity.kind.lower()}-{made.identity.name}.{format_}"
        texts.append(_Text(made.env, path, made.object, made.identity, made.mark))
    rank = {env: place for place, env in enumerate(run.environments)}
    return sorted(texts, key=lambda one: (rank[one.env], one.identity.namespace, one.identity[1:], one.identity))


def _clashes(texts: Sequence[_Text]) -> Iterator[Finding]:
    """Objects that cannot have a file each: their names are too long, or alike where case does not count."""
    for one in texts:
        name = one.path.rpartition("/")[2]
        if len(name.encode()) > _LONGEST_FILE_NAME:
            message = f"`{name[:40]}…` is {len(name.encode())} bytes long, too long for the name of a file"
            yield Finding("file-name-too-long", "spec", Severity.ERROR, message, one.mark, one.identity, one.env)
    for first, second in pairwise(sorted(texts, key=lambda one: (one.env, one.path.casefold(), one.mark))):
        if (first.env, first.path.casefold()) == (second.env, second.path.casefold()):
            message = f"`{second.path}` is the file of two objects; rename one of them"
            related = (Related(first.mark, f"`{first.path}` is made here"),)
            yield Finding(
                "shared-file-name",
                "fleet",
                Severity.ERROR,
                message,
                second.mark,
                second.identity,
                second.env,
                "",
                related,
            )


def _lacking(run: Run, jobs: Sequence[str], texts: Sequence[_Text]) -> str:
    """What was asked for and is not there."""
    for pattern in jobs:
        if not any(fnmatchcase(name, pattern) for name in run.names):
            return f"there is no job `{pattern}`{nearest(pattern, sorted(run.names))}"
    if texts:
        return ""
    if not run.names:
        return "there is no job under jobs/"
    where = ", ".join(env for env in run.environments if env)
    return f"no job to render{f' in {where}' if where else ''}"


def _stream(texts: Sequence[_Text], format_: str) -> str:
    if format_ == "yaml":
        return "---\n".join(one.body for one in texts)
    items = [json.loads(one.body) for one in texts]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, ensure_ascii=False, indent=2) + "\n"


def _abandoned(folder: Path, shelf: Catalogue) -> dict[str, dict[str, str]]:
    """When everything is rendered, environments that have no overlay any more have no files left."""
    return {env: {} for env in output.environments(folder) if env not in shelf.overlays}


def _write(tree: _Tree) -> Result:
    try:
        drifts = output.write(tree.folder, tree.wanted, partial=tree.partial)
    except UnfinishedError as unfinished:
        return stopped(Code.ERRORS, f"{unfinished}; the next run will finish the tree")
    except OSError as error:
        return stopped(Code.ERRORS, f"{error.filename or tree.folder}: {error.strerror}; nothing was written")
    foreign = list(_foreign(tree.folder, drifts))
    if foreign:
        return stopped(Code.ERRORS, "nothing was written", "".join(foreign))
    total = sum(map(len, tree.wanted.values()))
    written = sum(len(drift.missing) + len(drift.changed) - (output.LOCK in drift.changed) for drift in drifts.values())
    removed = sum(len(drift.stale) for drift in drifts.values())
    said = f"{counted(total, 'object')}: {written} written, {total - written} unchanged, {removed} removed\n"
    return Result(Code.FINE, err=said)


def _check(tree: _Tree) -> Result:
    try:
        drifts = {
            env: output.compare(tree.folder / env, files, partial=tree.partial) for env, files in tree.wanted.items()
        }
    except OSError as error:
        return stopped(Code.ERRORS, f"{error.filename or tree.folder}: {error.strerror}")
    lines = [*_foreign(tree.folder, drifts), *_differences(tree.folder, drifts)]
    if not lines:
        return Result(Code.FINE, err=f"{counted(sum(map(len, tree.wanted.values())), 'object')}, all up to date\n")
    return stopped(Code.ERRORS, f"the tree is not up to date; run `jobgen render -o {tree.folder}`", "".join(lines))


def _foreign(folder: Path, drifts: Mapping[str, Drift]) -> Iterator[str]:
    for env, drift in drifts.items():
        for path, why in drift.foreign:
            yield text.visible(f"{folder / env / path}: {why}") + "\n"


def _differences(folder: Path, drifts: Mapping[str, Drift]) -> Iterator[str]:
    for env, drift in drifts.items():
        words = (("missing", drift.missing), ("out of date", drift.changed), ("stale", drift.stale))
        for what, paths in words:
            for path in paths:
                yield text.visible(f"{folder / env / path}: {what}") + "\n"
