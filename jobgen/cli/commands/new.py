"""`jobgen new`: write a job to start from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import click

from jobgen.api.lint import lint
from jobgen.api.project import Project, load, select_environments
from jobgen.cli.complete import complete_folders
from jobgen.cli.options import force_option
from jobgen.cli.result import ExitCode, Result, error_result, write_new_files
from jobgen.cli.starter import suit_job
from jobgen.model.data import untraced
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import list_alternatives
from jobgen.rendering.build import is_spec
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.layout import list_starter_frameworks
from jobgen.reports.entries import format_findings
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.commented import edit_text

_NAME = lazy_pattern(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")


@click.command("new")
@click.argument("name", metavar="[FOLDER/]NAME", shell_complete=complete_folders)
@click.option("--framework", type=click.Choice(list_starter_frameworks()), help="The framework; default: pytorch.")
@click.option("--gpus", type=click.IntRange(0, 1024), metavar="N", help="GPUs for each pod that uses GPUs.")
@force_option
@click.pass_obj
def command(directory: Path, name: str, framework: str | None, gpus: int | None, force: bool) -> Result:
    """Write a new job for the platform of this repository, and check it in every environment.

    The file is jobs/[FOLDER/]NAME.yaml. Change its image, command and resources.
    """
    project = load(directory)
    # Before anything is written: settings with errors end the command.
    environments = select_environments(project.config, ())
    path = PurePosixPath("jobs", f"{name.removeprefix('jobs/')}.yaml")
    if not name or not all(_NAME.match(part) for part in name.split("/")):
        return error_result(
            ExitCode.USAGE,
            f"`{name}` is not the name of a job; use at most 63 lower-case letters, digits and `-`",
        )
    served = _list_served(project, environments)
    chosen = framework or ("pytorch" if "pytorch" in served else next(iter(served), ""))
    if chosen not in served:
        listed = list_alternatives(f"`{each}`" for each in served) or "none that has an example"
        return error_result(ExitCode.USAGE, f"the clusters of this repository do not run `{chosen}`; use {listed}")
    read = read_jobs(layout.find_jobs(project.root), project.config.kinds, [])
    jobs = [job for job in read if is_spec(job.document.data)]
    known = {job.document.name: job.file.path for job in jobs}
    if known.get(path.stem, str(path)) != str(path):
        return error_result(ExitCode.USAGE, f"{known[path.stem]} has a job `{path.stem}`; use another name")
    labels = _find_labels(jobs, path)

    def change(job: Any) -> None:
        job["metadata"]["name"] = path.stem
        if labels:
            job["metadata"]["labels"].clear()
            job["metadata"]["labels"].update(labels)
        if gpus is not None:
            _set_gpus(job["spec"], gpus)

    text = edit_text(suit_job(chosen, served[chosen]), change)
    depth = "../" * (len(path.parts) - 1)
    text = text.replace("$schema=../schemas", f"$schema={depth}schemas", 1)
    failure = write_new_files({project.root / path: text}, project.root, force=force)
    if failure:
        return failure
    checked = lint(project.root, paths=[str(project.root / path)])
    code = ExitCode.ERRORS if any(each.severity is Severity.ERROR for each in checked.findings) else ExitCode.OK
    return Result(code, err=f"{path} written\n{format_findings(checked.findings)}")


def _list_served(project: Project, environments: Sequence[str]) -> dict[str, str]:
    """Return the frameworks that all environments run and that have an example, each with its platform."""
    served: dict[str, str] = {}
    clusters = [project.config.environment(name, []).cluster for name in environments]
    for platform in clusters[0].list_platforms() if clusters else ():
        kinds = [kind for kind in project.config.kinds if kind.platform == platform]
        for kind, framework in ((kind, framework) for kind in kinds for framework in list_starter_frameworks()):
            if all(_serves(cluster, kind, framework) for cluster in clusters):
                served.setdefault(framework, platform)
    return served


def _serves(cluster: Cluster, kind: Kind, framework: str) -> bool:
    declared = cluster.find_version(kind.operator)
    has_kind = kind.platform in cluster.list_platforms() and kind.versions.contains(declared)
    return has_kind and framework in kind.frameworks and kind.frameworks[framework].versions.contains(declared)


def _find_labels(jobs: Sequence[Job], path: PurePosixPath) -> dict[str, Any]:
    """Return the labels of a job of the same folder, or else of any folder, which policies may require."""
    near = [job for job in jobs if PurePosixPath(job.file.path).parent == path.parent]
    found = next(iter((*near, *jobs)), None)
    return dict(untraced(found.document.data["metadata"].get("labels", {}))) if found else {}


def _set_gpus(spec: Any, gpus: int) -> None:
    """Set the GPUs of all pods that have any; without GPUs, shared memory is not needed."""
    for block in (spec, *spec.get("roles", {}).values()):
        resources = block.get("resources", {})
        if "gpu" in resources and gpus:
            resources["gpu"] = gpus
        elif "gpu" in resources:
            del resources["gpu"]
            block.pop("shm", None)
    if gpus and "torchrunConfig" in spec.get("pytorch", {}):
        spec["pytorch"]["torchrunConfig"]["procPerNode"] = str(gpus)
    if gpus and "slotsPerWorker" in spec.get("mpi", {}):
        spec["mpi"]["slotsPerWorker"] = gpus
        command = spec["roles"].get("launcher", spec).get("command", ())
        if "-np" in command:
            command[command.index("-np") + 1] = str(gpus * spec["roles"]["worker"].get("replicas", 1))
