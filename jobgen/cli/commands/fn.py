"""`jobgen fn`: a KRM function for kustomize and kpt; it makes jobs, lays overlays over given ones, or judges them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import click

from jobgen.api.render import matcher, sort_objects
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.gitops.krm import (
    FunctionError,
    FunctionTask,
    ResourceList,
    get_annotations,
    is_local,
    parse_resource_list,
    parse_task,
    source_file,
    to_results,
    without_tracking,
)
from jobgen.model.data import Data, Location
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner, new_overlay_use
from jobgen.pipeline.load_policies import load_policies
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import Job, Tracer
from jobgen.render.build import identity_of, is_spec
from jobgen.repo import layout
from jobgen.report.summary import count_severities, format_findings, pluralize
from jobgen.report.suppress import Suppression, apply_suppressions
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml


class _Done(NamedTuple):
    """What a function made of its items, what it found, and the files that items were read from."""

    items: list[Data]
    findings: list[Finding]
    files: Mapping[str, int] = MappingProxyType({})
    nothing: bool = False


class _Work(NamedTuple):
    """What a function works with: the list, what is asked, the folder it stands in, and the repository."""

    given: ResourceList
    task: FunctionTask
    folder: Path
    project: ProjectConfig


@click.command("fn")
@click.argument("mode", required=False, type=click.Choice(["generate", "transform", "validate"]))
@click.pass_obj
def command(directory: Path, mode: str | None) -> Result:
    """Run as a KRM function (stdin to stdout).

    The input and output are a ResourceList. Its functionConfig (JobGenerator, JobTransformer, JobValidator) or MODE
    selects what to do.
    """
    return run(directory, mode or "", sys.stdin.buffer.read())


def run(folder: Path, mode: str, stdin: bytes) -> Result:
    """Read a ResourceList, do what is asked, and print the list with what was found."""
    try:
        given = parse_resource_list(stdin)
        task = parse_task(given.config, mode)
        done = _done(given, task, folder.resolve())
    except FunctionError as wrong:
        return error_result(ExitCode.USAGE, str(wrong))
    out = given.to_yaml(done.items, to_results(done.findings, done.files))
    failed = any(finding.severity is Severity.ERROR for finding in done.findings)
    if done.nothing:
        return error_result(ExitCode.NOTHING_TO_DO, "there is no job to generate")
    # kustomize shows nobody the results, so they are told here, too.
    said = format_findings(done.findings)
    summary = f"jobgen: {count_severities(done.findings)} in {pluralize(len(given.items), 'item')}\n" if said else ""
    return Result(ExitCode.ERRORS if failed else ExitCode.OK, out, said + summary)


def _done(given: ResourceList, task: FunctionTask, folder: Path) -> _Done:
    root = layout.find_root(folder)
    if root is None and task.mode != "validate":
        raise FunctionError("no jobs repository: there is no jobgen.yaml here or above, and no jobs/ here")
    project = config.load(root or folder)
    if project.findings:
        return _Done(given.items, list(config.load(project.root, traced=True).findings))
    return _DO[task.mode](_Work(given, task._replace(env=_environment(project, task)), folder, project))


def _environment(project: ProjectConfig, task: FunctionTask) -> str:
    """The environment to work in; who only judges needs none."""
    known = sorted(project.overlays)
    if task.env and task.env not in known:
        hint = did_you_mean(task.env, known)
        raise FunctionError(f"there is no environment `{task.env}`{hint} (known: {', '.join(known) or 'none'})")
    default = project.environments()
    if task.env or len(default) == 1:
        return task.env or default[0]
    if task.mode == "validate":
        return ""
    raise FunctionError(f"`env` has to name one environment (known: {', '.join(known)})")


def _generate(work: _Work) -> _Done:
    """The jobs of the repository behind the items; one that is among them already is replaced in its place."""
    task = work.task
    walk = Run(work.project, [task.env], matcher(task.jobs))
    made: dict[Identity, Data] = {one.identity: one.object for one in sort_objects(walk)}
    if walk.failed:
        return _Done(work.given.items, walk.findings)
    if not made:
        return _Done(work.given.items, [], nothing=True)
    items = [_renewed(item, made.pop(identity_of(item), None)) for item in work.given.items]
    return _Done([*items, *made.values()], walk.findings)


def _renewed(item: Data, made: Data) -> Data:
    """An item with new content, and the notes of whoever runs functions."""
    if made is None:
        return item
    plain = without_tracking(item)
    notes = {key: value for key, value in get_annotations(item).items() if key not in get_annotations(plain)}
    if not notes:
        return made
    metadata = made["metadata"]
    return {**made, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **notes}}}


def _transform(work: _Work) -> _Done:
    """The environment's overlays laid over every item; specs become the objects of their jobs."""
    runner, tracer = EnvironmentRunner(work.project, work.task.env), Tracer(work.project)
    findings = runner.overlay_findings(tracer)
    items: list[Data] = []
    for item, entry in _entries(work, {}):
        made = item
        for job in read_jobs([entry] if entry else [], work.project.frameworks, findings):
            patches = runner.patches_for(job)
            if patches is not None:
                rendered = runner.build_object(job, patches, new_overlay_use())
                findings += [] if rendered else tracer.findings(job, runner.name)
                made = _under_its_name(item, rendered.object) if rendered else item
        items.append(made)
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    return _Done(work.given.items if failed else items, findings)


def _under_its_name(item: Data, made: Data) -> Data:
    """What overlays made of an item; whoever runs us knows objects by their names, so those must stay."""
    if is_spec(item):
        return made
    before, after = identity_of(item), identity_of(made)
    if not before.namespace and after.namespace:
        # The environment's namespace is a default; setting it is up to the kustomization.
        metadata = {key: value for key, value in made["metadata"].items() if key != "namespace"}
        made, after = {**made, "metadata": metadata}, after._replace(namespace="")
    if before != after:
        raise FunctionError(f"an overlay makes `{before}` into `{after}`, and a function must not rename")
    return made


def _validate(work: _Work) -> _Done:
    """The items as they came, and all that is wrong with them."""
    policies = load_policies(work.project.root)
    runner = EnvironmentRunner(work.project, work.task.env, lambda: policies.policies)
    tracer = Tracer(work.project)
    findings = [*policies.findings, *runner.overlay_findings(tracer)]
    comments: list[Suppression] = []
    files: dict[str, int] = {}
    for _, entry in _entries(work, files):
        for job in read_jobs([entry] if entry else [], work.project.frameworks, findings, comments):
            findings += _judged(job, runner, tracer)
    told = filter(None, map(work.project.severities.apply, findings))
    # Deployments and the like are in every kustomization, and none of our business.
    ours = [finding for finding in told if finding.rule != "missing-schema"]
    kept, _, _ = apply_suppressions(ours, comments, work.project.mandatory, "")
    return _Done(
        work.given.items, sorted(set(kept), key=lambda found: (found.location, found.rule, found.message)), files
    )


def _judged(job: Job, runner: EnvironmentRunner, tracer: Tracer) -> list[Finding]:
    """What is wrong with an item: as it is, or for a spec, with what the environment makes of it."""
    env = runner.name if is_spec(job.document.data) else ""
    if is_spec(job.document.data):
        patches = runner.patches_for(job)
        if patches is None or runner.build_object(job, patches, new_overlay_use()) is None:
            return [] if patches is None else tracer.findings(job, env)
    return tracer.findings(job, env, runner.checker)


def _entries(work: _Work, files: dict[str, int]) -> Iterator[tuple[Data, layout.FileEntry | None]]:
    """Every item with the text to read it from: its own file if that still says the same, else the item printed."""
    for item in work.given.items:
        if is_local(item):
            yield item, None
            continue
        path, index = source_file(item)
        content = _written(work.folder, path, index, item) if path and work.task.mode == "validate" else b""
        if content:
            files[path] = index
        name = path if content else str(identity_of(item))
        yield item, layout.FileEntry(name, content=content or to_yaml(item).encode())


def _written(folder: Path, path: str, index: int, item: Data) -> bytes:
    """The document of a file that an item was read from, with all other lines empty; nothing if it says otherwise."""
    full = os.path.realpath(folder / path)
    if not Path(full).is_relative_to(folder) or not os.path.isfile(full):
        return b""
    file = layout.read_file(layout.FileEntry(path, full))
    documents = read(file.content, path).documents
    if index >= len(documents) or documents[index].data != without_tracking(item):
        return b""
    starts = [_line(document.location) for document in documents]
    end = starts[index + 1] if index + 1 < len(starts) else len(file.content)
    lines = file.content.splitlines(keepends=True)
    return b"".join(line if starts[index] <= number < end else b"\n" for number, line in enumerate(lines))


def _line(location: Location) -> int:
    return location.line - 1


_DO: dict[str, Callable[[_Work], _Done]] = {"generate": _generate, "transform": _transform, "validate": _validate}
