"""`jobgen render`: the manifests of jobs as a stream, or as a tree of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.cli.commands.environments import environments
from jobgen.cli.commands.tree import Tree, check_tree, write_tree
from jobgen.cli.commands.tree_metadata import Place, companions, origins, place_of
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Identity, Related, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import WHOLE
from jobgen.repo import layout, rendered_tree
from jobgen.repo.atomic import links_outside
from jobgen.repo.rendered_tree import TreeExtras
from jobgen.report.summary import count_severities, format_findings
from jobgen.yamlio.write import to_json, to_yaml

_LONGEST_FILE_NAME = 255
"""Bytes that every common file system takes in one name."""


class Text(NamedTuple):
    """A rendered object as text, with the path that it has in the tree of its environment."""

    env: str
    path: str
    body: str
    identity: Identity
    location: Location
    place: Place


def render(
    root: Path,
    jobs: Sequence[str],
    envs: Sequence[str],
    folder: Path | None,
    *,
    format_: str,
    progress: Callable[[int, int], None] = lambda _, __: None,
    check: bool = False,
    allow_empty: bool = False,
    allow_mass_delete: bool = False,
    today: str = "",
) -> Result:
    """Render the jobs that are wanted; nothing is printed or written if there are errors."""
    if check and folder is None:
        return error_result(ExitCode.USAGE, "--check compares a tree; name it with -o")
    project = config.load(root, today=today)
    chosen = environments(project, envs)
    if isinstance(chosen, Result):
        return chosen
    if folder is not None and any(layout.is_source_folder(root, folder / env) for env in chosen):
        return error_result(ExitCode.USAGE, f"`{folder}` holds what jobgen reads; write the tree elsewhere")
    if folder is not None and links_outside(folder, root):
        return error_result(
            ExitCode.USAGE, f"`{folder}` leads out of the repository by a symbolic link; write the tree elsewhere"
        )
    run = Run(project, chosen, matcher(jobs), to_json if format_ == "json" else to_yaml, progress)
    texts = texts_of(run, format_)
    run.findings += _clashes(texts) if folder else ()
    said = format_findings(run.findings)
    if run.failed:
        return error_result(ExitCode.ERRORS, f"{count_severities(run.findings)}; nothing was rendered", said)
    lacking = "" if allow_empty and not texts and not jobs else _lacking(run, jobs, texts)
    if lacking:
        return error_result(ExitCode.NOTHING_TO_DO, lacking, said)
    if folder is None:
        return Result(ExitCode.OK, stream(texts, format_), said)
    wanted = {env: {one.path: one.body for one in texts if one.env == env} for env in chosen}
    abandoned = {} if jobs or envs else _abandoned(folder, project)
    places = {env: {one.path: one.place for one in texts if one.env == env} for env in chosen}
    beside = TreeExtras(companions, origins(project, places))
    tree = Tree(folder, {**abandoned, **wanted}, bool(jobs), beside, allow_empty, allow_mass_delete)
    done = check_tree(tree) if check else write_tree(tree)
    return done._replace(err=said + done.err)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Says whether a job is meant by names or shell patterns; without any, all are."""
    return lambda name: not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def texts_of(run: Run, format_: str) -> list[Text]:
    """All objects, in an order that does not depend on where their jobs stand."""
    texts = []
    for made in run:
        namespace = made.identity.namespace or "default"
        path = f"{namespace}/{made.identity.kind.lower()}-{made.identity.name}.{format_}"
        # A member of a sweep is made from the whole of its document.
        place = place_of(made.location, made.position, max(made.item, WHOLE))
        texts.append(Text(made.env, path, made.object, made.identity, made.location, place))
    if not all(map(run.wanted, run.names)):
        # What an overlay deletes may be in jobs that were not asked for.
        run.findings[:] = [found for found in run.findings if not _is_of_others(found)]
    rank = {env: place for place, env in enumerate(run.environments)}
    return sorted(texts, key=lambda one: (rank[one.env], one.identity.namespace, one.identity[1:], one.identity))


def _is_of_others(finding: Finding) -> bool:
    return finding.rule == "deletes-nothing" and finding.location.file.startswith("overlays/")


def _clashes(texts: Sequence[Text]) -> Iterator[Finding]:
    """Objects that cannot have a file each: their names are too long, or alike where case does not count."""
    for one in texts:
        name = one.path.rpartition("/")[2]
        if len(name.encode()) > _LONGEST_FILE_NAME:
            message = f"`{name[:40]}…` is {len(name.encode())} bytes long, too long for the name of a file"
            yield Finding("file-name-too-long", "spec", Severity.ERROR, message, one.location, one.identity, one.env)
    for first, second in pairwise(sorted(texts, key=lambda one: (one.env, one.path.casefold(), one.location))):
        if (first.env, first.path.casefold()) == (second.env, second.path.casefold()):
            message = f"`{second.path}` is the file of two objects; rename one of them"
            related = (Related(first.location, f"`{first.path}` is made here"),)
            yield Finding(
                "shared-file-name",
                "fleet",
                Severity.ERROR,
                message,
                second.location,
                second.identity,
                second.env,
                "",
                related,
            )


def _lacking(run: Run, jobs: Sequence[str], texts: Sequence[Text]) -> str:
    """What was asked for and is not there."""
    for pattern in jobs:
        if not any(fnmatchcase(name, pattern) for name in run.names):
            return f"there is no job `{pattern}`{did_you_mean(pattern, sorted(run.names))}"
    if texts:
        return ""
    if not run.names:
        return "there is no job under jobs/"
    where = ", ".join(env for env in run.environments if env)
    return f"no job to render{f' in {where}' if where else ''}"


def stream(texts: Sequence[Text], format_: str) -> str:
    """Objects as one text: a YAML stream, or a List in JSON."""
    if format_ == "yaml":
        return "---\n".join(one.body for one in texts)
    items = [json.loads(one.body) for one in texts]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, ensure_ascii=False, indent=2) + "\n"


def _abandoned(folder: Path, project: ProjectConfig) -> dict[str, dict[str, str]]:
    """When everything is rendered, environments that have no overlay any more have no files left."""
    return {env: {} for env in rendered_tree.find_environments(folder) if env not in project.overlays}
