"""`jobgen render`: the manifests of jobs as a stream, or as a tree of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from jobgen import catalogue, output
from jobgen.commands import Code, Result, environments, stopped
from jobgen.emit import to_json, to_yaml
from jobgen.output import Drift
from jobgen.pipeline import Run
from jobgen.report import text
from jobgen.schema import nearest

Texts = dict[str, dict[str, str]]
"""The text of every object, by environment and by the path it has in a tree."""


def render(
    root: Path,
    jobs: Sequence[str],
    envs: Sequence[str],
    folder: Path | None,
    *,
    check: bool,
    format_: str,
    progress: Callable[[int], None],
) -> Result:
    """Render the jobs that are wanted; nothing is printed or written if there are errors."""
    if check and folder is None:
        return stopped(Code.USAGE, "--check compares a tree; name it with -o")
    shelf = catalogue.load(root)
    chosen = environments(shelf, envs)
    if isinstance(chosen, Result):
        return chosen
    run = Run(shelf, chosen, _matcher(jobs), to_json if format_ == "json" else to_yaml, progress)
    texts = _texts(run, format_)
    said = text.render(run.findings)
    if run.failed:
        return stopped(Code.ERRORS, f"{text.summary(run.findings)}; nothing was rendered", said)
    lacking = _lacking(run, jobs, texts)
    if lacking:
        return stopped(Code.NOTHING, lacking, said)
    if folder is None:
        return Result(Code.FINE, _stream(texts, format_), said)
    whole = not jobs and not envs
    done = (
        _check(folder, texts, partial=bool(jobs), whole=whole)
        if check
        else _write(folder, texts, partial=bool(jobs), whole=whole)
    )
    return done._replace(err=said + done.err)


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    return lambda name: not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _texts(run: Run, format_: str) -> Texts:
    texts: Texts = {env: {} for env in run.environments}
    for made in run:
        namespace = made.identity.namespace or "default"
        path = f"{namespace}/{made.identity.kind.lower()}-{made.identity.name}.{format_}"
        texts[made.env][path] = made.object
    return {env: dict(sorted(files.items())) for env, files in texts.items()}


def _lacking(run: Run, jobs: Sequence[str], texts: Texts) -> str:
    """What was asked for and is not there."""
    for pattern in jobs:
        if not any(fnmatchcase(name, pattern) for name in run.names):
            return f"there is no job `{pattern}`{nearest(pattern, sorted(run.names))}"
    if any(texts.values()):
        return ""
    where = ", ".join(env for env in run.environments if env)
    return f"no job to render{f' in {where}' if where else ''}"


def _stream(texts: Texts, format_: str) -> str:
    every = [body for files in texts.values() for body in files.values()]
    if format_ == "yaml":
        return "---\n".join(every)
    items = [json.loads(body) for body in every]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, ensure_ascii=False, indent=2) + "\n"


def _write(folder: Path, texts: Texts, *, partial: bool, whole: bool) -> Result:
    wanted = _with_abandoned(folder, texts, whole=whole)
    drifts = _drifts(folder, wanted, partial=partial)
    in_the_way = "".join(
        f"{folder / env / path}: is in the way and was not written by jobgen; move it\n"
        for env, drift in drifts.items()
        for path in drift.foreign
    )
    if in_the_way:
        return stopped(Code.ERRORS, "nothing was written", in_the_way)
    try:
        for env, files in wanted.items():
            output.write(folder / env, files, partial=partial)
    except OSError as error:
        return stopped(
            Code.ERRORS, f"{error.filename or folder}: {error.strerror}; the next run will bring the tree up to date"
        )
    written = sum(len(drift.missing) + len(drift.changed) for drift in drifts.values())
    removed = sum(len(drift.stale) for drift in drifts.values())
    total = sum(map(len, texts.values()))
    return Result(
        Code.FINE, err=f"{total} objects: {written} written, {total - written} unchanged, {removed} removed\n"
    )


def _check(folder: Path, texts: Texts, *, partial: bool, whole: bool) -> Result:
    drifts = _drifts(folder, _with_abandoned(folder, texts, whole=whole), partial=partial)
    lines = [
        f"{folder / env / path}: {what}\n"
        for env, drift in drifts.items()
        for what, paths in (
            ("missing", drift.missing),
            ("out of date", drift.changed),
            ("not written by jobgen", drift.foreign),
            ("stale", drift.stale),
        )
        for path in paths
    ]
    if not lines:
        return Result(Code.FINE, err=f"{sum(map(len, texts.values()))} objects, all up to date\n")
    return stopped(Code.ERRORS, f"the tree is not up to date; run `jobgen render -o {folder}`", "".join(lines))


def _drifts(folder: Path, texts: Mapping[str, dict[str, str]], *, partial: bool) -> dict[str, Drift]:
    return {env: output.compare(folder / env, files, partial=partial) for env, files in texts.items()}


def _with_abandoned(folder: Path, texts: Texts, *, whole: bool) -> Texts:
    """When everything is rendered, environments that are gone have no files left."""
    return {**{env: {} for env in output.environments(folder) if whole}, **texts}
