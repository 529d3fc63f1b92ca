"""Render jobs to manifests."""

from __future__ import annotations

import json
import os
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from jobgen import __version__
from jobgen.api.errors import NotFoundError, OperationError, UsageError, check_format, check_names
from jobgen.api.project import Project, ProjectPath, open_project, select_environments
from jobgen.model.data import Location, Plain, untraced
from jobgen.model.finding import Finding, Identity, Related, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_closest, suggest_or
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.render_task import RenderTask, render_jobs, request_jobs
from jobgen.rendering.run import run
from jobgen.rendering.run_values import RunResult
from jobgen.repo import git, layout, rendered_tree
from jobgen.repo.atomic import advise, find_output_fault
from jobgen.repo.commit import Folder, open_commit
from jobgen.repo.files import MANIFEST_SUFFIXES
from jobgen.repo.lock import ATTRIBUTES, KUSTOMIZATION, Origin, digest_data, is_object_path
from jobgen.repo.rendered_tree import Drift, IncompleteWriteError, TreeExtras
from jobgen.repo.root import is_source_folder
from jobgen.repo.shipped import find_shipped
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_json, to_yaml

_MAX_REASONS = 3
_MAX_FILE_NAME = 255
"""Bytes that common file systems allow in a file name."""

TextFormat = Literal["yaml", "json"]
Progress = Callable[[int, int], None]
"""Called with the number of objects that are done, and of all objects."""


class RenderedObject(NamedTuple):
    """A rendered Kubernetes object."""

    environment: str
    identity: Identity
    """apiVersion, kind, namespace and name."""
    location: Location
    """Where its job is written."""
    text: str
    """The manifest, exactly as `jobgen render` prints it."""
    format: TextFormat
    document: int
    """The index of the job's document in its file."""
    item: int
    """The index of the job in its document if that is a List, else -1."""
    job_digest: str = ""
    """The digest of the data of its job; empty without `unique_files`."""

    @property
    def manifest(self) -> Mapping[str, Plain]:
        """The manifest as data."""
        if self.format == "json":
            parsed: Mapping[str, Plain] = json.loads(self.text)
            return parsed
        data: Mapping[str, Plain] = read(self.text.encode(), self.path).documents[0].data
        return data

    @property
    def path(self) -> str:
        """The path of its file in a rendered tree, below the folder of its environment."""
        return name_file(self.identity, self.format)


def name_file(identity: Identity, format: TextFormat = "yaml") -> str:  # noqa: A002 -- as above
    """Return the path of the file of an object, below the folder of its environment."""
    return f"{identity.namespace or 'default'}/{identity.kind.lower()}-{identity.name}.{format}"


class RenderResult(NamedTuple):
    """The objects of some jobs, or the errors that prevented them."""

    objects: tuple[RenderedObject, ...]
    """Sorted by environment, namespace, kind and name; empty if there are errors."""
    findings: tuple[Finding, ...]
    environments: tuple[str, ...]
    """The environments that were rendered."""
    dated: bool = False
    """True if the objects depend on the date."""

    @property
    def failed(self) -> bool:
        """Return True if errors prevented rendering."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def render(
    project: ProjectPath,
    jobs: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    format: TextFormat = "yaml",  # noqa: A002 -- the name of the option
    allow_empty: bool = False,
    unique_files: bool = False,
    progress: Progress = lambda _, __: None,
) -> RenderResult:
    """Render jobs for their environments. If anything is wrong, the result has findings and no objects.

    If jobs are named without patterns, errors in files of other jobs do not count.

    Args:
        project: A project, or a path in one.
        jobs: Names or shell patterns of jobs; by default all jobs.
        environments: Names of environments; by default those of the project.
        format: The format of the texts, `yaml` or `json`.
        allow_empty: Whether a project without jobs is valid.
        unique_files: Whether the objects are for a rendered tree: each has the digest of its job, and two objects with
            the same path are an error.
        progress: Called from time to time.

    Raises:
        UsageError: `jobgen.yaml` has errors, or there is no such environment or format.
        NotFoundError: A pattern matches no job, or there is nothing to render.
        TypeError: `jobs` or `environments` is not a list of strings.

    """
    check_names("jobs", jobs)
    check_names("environments", environments)
    check_format(format, get_args(TextFormat))
    opened = open_project(project)
    selected = select_environments(opened.config, environments)
    write = to_json if format == "json" else to_yaml
    task = RenderTask(write, deployable=True, digested=unique_files)
    found = run(request_jobs(opened.config, selected, matcher(jobs), task)._replace(progress=progress))
    objects = tuple(to_rendered_object(made, format) for made in sort_objects(found))
    findings = list_findings(found)
    if jobs and found.names.issuperset(jobs):
        # All jobs are found by their names. A pattern may match a job in a file that cannot be read.
        files, wanted = ((finding, finding.location.file) for finding in findings), found.wanted_files
        findings = [finding for finding, file in files if not file.startswith("jobs/") or file in wanted]
    if unique_files:
        findings += find_path_conflicts(objects)
    result = RenderResult(objects, tuple(findings), tuple(selected), found.dated)
    if result.failed:
        return result._replace(objects=())
    if objects or jobs or not allow_empty:
        _check_found(found, findings, jobs, objects)
    return result


def to_rendered_object(made: Rendered, format: TextFormat) -> RenderedObject:  # noqa: A002 -- as above
    """Return the public value for an object of a run."""
    # A member of a sweep is made from its whole document.
    where = (made.position, max(made.item, -1), made.job_digest)
    return RenderedObject(made.env, made.identity, made.location, made.object, format, *where)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that checks whether names or shell patterns select a job; no patterns select all."""
    return lambda name: not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def list_findings(result: RunResult) -> list[Finding]:
    """Return the findings of a run, of which some jobs may have been selected."""
    if all(map(result.request.wanted, result.names)):
        return [*result.findings]
    # A deletion in an overlay may affect only jobs that were not selected.
    return [
        finding
        for finding in result.findings
        if finding.rule != "deletes-nothing" or not finding.location.file.startswith("overlays/")
    ]


def sort_objects(result: RunResult) -> list[Rendered]:
    """Return the objects of a run, in an order that does not depend on the files of their jobs."""
    rank = {env: index for index, env in enumerate(result.layers.environments)}
    return sorted(
        result.objects, key=lambda made: (rank[made.env], made.identity.namespace, made.identity[1:], made.identity)
    )


def find_path_conflicts(objects: Sequence[RenderedObject]) -> Iterator[Finding]:
    """Report objects whose file name is too long, or equal to another on case-insensitive file systems."""
    for one in objects:
        name = one.path.rpartition("/")[2]
        if len(name.encode()) > _MAX_FILE_NAME:
            message = f"`{name[:40]}…` has {len(name.encode())} bytes; a file name has at most {_MAX_FILE_NAME}"
            where = one.location, one.identity, one.environment
            yield Finding("file-name-too-long", "spec", Severity.ERROR, message, *where)
    by_path = sorted(objects, key=lambda one: (one.environment, one.path.casefold(), one.location))
    for first, second in pairwise(by_path):
        if (first.environment, first.path.casefold()) == (second.environment, second.path.casefold()):
            message = f"two objects have the file `{second.path}`; rename one of them"
            related = (Related(first.location, f"`{first.path}` is rendered from here"),)
            where = second.location, second.identity, second.environment
            yield Finding("shared-file-name", "fleet", Severity.ERROR, message, *where, related=related)


def _name_other_job(pattern: str, known: list[str]) -> str:
    """Return the job that was probably meant; a file is named by those who know tools that read files."""
    stem, suffix = posixpath.splitext(posixpath.basename(pattern))
    if suffix not in MANIFEST_SUFFIXES:
        return suggest_or(pattern, known, "`jobgen render` without names prints all jobs")
    close = find_closest(stem, known) or next(iter(known), "")
    return f"; name a job, not a file{f': `{close}`' if close else ''}"


def _check_found(
    result: RunResult, findings: Sequence[Finding], jobs: Sequence[str], objects: Sequence[RenderedObject]
) -> None:
    """Raise a NotFoundError if a pattern matches no job, or there are no objects."""
    project, names, wanted = result.request.project, result.names, result.request.wanted
    environments = result.layers.environments
    for pattern in jobs:
        if not any(fnmatchcase(name, pattern) for name in names):
            is_env = pattern in project.environments()
            hint = f"; for the environment, write `-e {pattern}`" if is_env else ""
            hint = hint or _name_other_job(pattern, sorted(names))
            raise NotFoundError(f"there is no job `{pattern}`{hint}", findings)
    if objects:
        return
    if not names:
        raise NotFoundError("there is no job under jobs/; write one with `jobgen new NAME`", findings)
    reasons: list[str] = []
    runners = [EnvironmentRunner(project, env) for env in environments]
    for job in read_jobs(layout.find_jobs(project.root), project.kinds, []) if jobs else ():
        # A selected job may be paused, done or expired.
        if wanted(job.document.name) or (job.document.sweep and wanted(job.document.sweep)):
            found = {runner.name: reason for runner in runners if (reason := runner.explain_inactive(job))}
            for reason in dict.fromkeys(found.values()):
                within = ", ".join(env for env in found if env and found[env] == reason)
                reasons.append(f"`{job.document.name}` {reason}{f' in {within}' if within else ''}")
    if len(reasons) > _MAX_REASONS:
        reasons[_MAX_REASONS:] = ["…"]
    within = ", ".join(filter(None, environments))
    where = f" in {within}" if within else ""
    message = f"there is no job to render{where}; `jobgen render JOB` says why a job is left out"
    raise NotFoundError("; ".join(reasons) or message, findings)


def join_objects(objects: Sequence[RenderedObject], format: TextFormat = "yaml", *, labeled: bool = False) -> str:  # noqa: A002 -- as above
    """Return the objects, which have a format, as one text: a YAML stream, or a List in JSON.

    In a `labeled` stream, a comment before the first object of each environment has its name.
    """
    if format == "yaml":
        groups = groupby(objects, key=lambda one: one.environment if labeled else "")
        labels = ((f"# environment: {env}\n" if env else "", list(several)) for env, several in groups)
        return "---\n".join(label + "---\n".join(one.text for one in several) for label, several in labels)
    items: list[Any] = [json.loads(one.text) for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, ensure_ascii=False, indent=2) + "\n"


# Write a rendered tree, or compare it with the files on disk.

_ALWAYS_DELETABLE = 3
"""This many files may be deleted at once, whatever their share."""

_HASH = lazy_pattern(r"-[0-9a-f]{8}(?=\.yaml$)")


class Tree(NamedTuple):
    """A folder and its files by environment: all files of each environment, or only some if `partial`."""

    folder: Path
    wanted: dict[str, dict[str, str]]
    partial: bool
    extras: TreeExtras
    allow_empty: bool = False
    allow_mass_delete: bool = False

    @property
    def objects(self) -> int:
        """The number of rendered objects."""
        return sum(map(len, self.wanted.values()))


def check_folder(root: Path, folder: Path, environments: Sequence[str], *, part: str = "") -> None:
    """Raise a UsageError if a tree cannot be written to a folder; if it is only a `part`, also if it has a tree."""
    if part and os.path.isdir(folder) and rendered_tree.find_environments(folder):
        # It would replace the tree of all jobs.
        raise UsageError(f"`{folder}` has a rendered tree; {part} writes its part to a new folder, such as `-o part`")
    fault = find_output_fault(folder, root)
    if fault:
        raise UsageError(f"`{folder}` {fault}; choose another folder")
    if any(is_source_folder(root, folder / env) for env in environments):
        raise UsageError(f"`{folder}` contains files that jobgen reads; choose another folder")


def plan_tree(
    project: Project,
    folder: Path,
    rendered: RenderResult,
    *,
    some_jobs: bool = False,
    some_environments: bool = False,
    allow_empty: bool = False,
    allow_mass_delete: bool = False,
) -> Tree:
    """Return the tree for rendered objects.

    If all environments were rendered, those that no longer have an overlay have no files.
    """
    environments = rendered.environments
    objects = {env: [one for one in rendered.objects if one.environment == env] for env in environments}
    wanted = {env: {one.path: one.text for one in several} for env, several in objects.items()}
    digests = {env: {one.path: one.job_digest for one in several} for env, several in objects.items()}
    removed = {
        env: dict[str, str]()
        for env in (() if some_jobs or some_environments else rendered_tree.find_environments(folder))
        if env not in project.config.overlays
    }
    source = _name_source(project.config.root, folder)
    origins = {env: each._replace(source=source) for env, each in find_origins(project.config, digests).items()}
    extras = TreeExtras(make_extra_files, origins)
    return Tree(folder, {**removed, **wanted}, some_jobs, extras, allow_empty, allow_mass_delete)


def _name_source(root: Folder, folder: Path) -> str:
    """Return the commit that a tree in another work tree is rendered from; `-dirty` follows if files are changed.

    In the same work tree, the commit that will have the tree is not known yet.
    """
    if not isinstance(root, Path) or folder.resolve().is_relative_to(root.resolve()):
        return ""
    near = next(each for each in (folder, *folder.resolve().parents) if each.is_dir())
    own, other = git.find_work_tree(root), git.find_work_tree(near)
    if own is None or other in (None, own) or not git.has_commit(root):
        return ""
    return git.resolve_commit(root, "HEAD") + ("-dirty" if git.list_changed(root) else "")


def write_tree(tree: Tree, *, fsync: bool = True) -> dict[str, Drift]:
    """Bring a tree up to date, on the disk with `fsync`, and return what was different, or raise an OperationError.

    Nothing is written if a foreign file is in the way or too many files would be deleted.
    """
    try:
        return rendered_tree.write_tree(
            tree.folder,
            tree.wanted,
            partial=tree.partial,
            extras=tree.extras,
            refused=lambda drifts: any(deletes_too_much(tree, drift) for drift in drifts.values()),
            fsync=fsync,
        )
    except IncompleteWriteError as error:
        raise OperationError(f"{error}; the next run will finish the tree") from error
    except OSError as error:
        path = error.filename or tree.folder
        raise OperationError(f"{path}: {error.strerror}; nothing was written{advise(error)}") from error


def compare_tree(tree: Tree) -> dict[str, Drift]:
    """Return how a tree differs from the files on disk, by environment; nothing is written."""
    return {
        env: rendered_tree.compare_tree(tree.folder / env, files, partial=tree.partial, env=env, extras=tree.extras)
        for env, files in tree.wanted.items()
    }


def deletes_too_much(tree: Tree, drift: Drift) -> str:
    """Return the option that allows the deletions of an environment, if they need one."""
    if count_deleted(drift) and not drift.wanted_objects:
        return "" if tree.allow_empty else "--allow-empty"
    if count_lost(drift) > max(_ALWAYS_DELETABLE, drift.existing_objects / 2):
        return "" if tree.allow_mass_delete else "--allow-mass-delete"
    return ""


def count_deleted(drift: Drift) -> int:
    """Return how many objects an environment loses."""
    return sum(map(is_object_path, drift.stale))


def count_lost(drift: Drift) -> int:
    """Return how many objects an environment loses without getting another run of them."""
    # The name of a file has the hash of its run or of its content.
    lost = Counter(_HASH.sub("", path) for path in drift.stale if is_object_path(path))
    return (lost - Counter(_HASH.sub("", path) for path in drift.missing)).total()


def make_extra_files(env: str, objects: Sequence[str]) -> dict[str, str]:
    """Return the files beside the objects of an environment: for Flux, kustomize and Git."""
    attributes = """\
# Written by jobgen: reviewers need not read these files, and their lines end alike everywhere.
*.yaml text eol=lf linguist-generated
*.json text eol=lf linguist-generated
.gitattributes text eol=lf linguist-generated
"""
    kustomization: dict[str, Plain] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        **({"metadata": {"name": env}} if env else {}),
        "sortOptions": {"order": "fifo"},
        "resources": list(objects),
    }
    return {ATTRIBUTES: attributes, KUSTOMIZATION: to_yaml(kustomization)}


def find_origins(project: ProjectConfig, jobs: Mapping[str, Mapping[str, str]]) -> dict[str, Origin]:
    """Return the digests of the input of each environment; `jobs` has the digest of the job of each file.

    Digests cover data and not text: comments, the order of keys and file names do not matter.
    """
    # The kinds of jobgen itself belong to its version.
    is_own = find_shipped("schemas").parent != project.root
    files = layout.read_own_kinds(project.layers) if is_own else ()
    kinds: list[Any] = [document for file in files for document in config.read_valid_documents(file, "kind", [])]
    runtimes = [untraced(dict(project.runtimes))] if project.runtimes else []
    origins: dict[str, Origin] = {}
    for env, digests in jobs.items():
        if digests:
            names = sorted(list_ancestors(env, project.overlays))
            specs = [untraced(list(project.overlays[name].specs)) for name in names]
            origins[env] = Origin(__version__, digest_data([specs, kinds, *runtimes]), digests)
    return origins


class ChangedObjects(NamedTuple):
    """What differs between two renders."""

    rendered: RenderResult
    """The objects that are new or have other texts, and their environments."""
    gone: tuple[tuple[Identity, tuple[str, ...]], ...]
    """The objects that only the revision has, each with its environments."""
    errors: int
    """The number of errors at the revision. What it cannot render counts as new."""


def keep_changed(
    project: Project,
    rendered: RenderResult,
    revision: str,
    jobs: Sequence[str] = (),
    environments: Sequence[str] = (),
    format: TextFormat = "yaml",  # noqa: A002 -- the name of the option
) -> ChangedObjects:
    """Compare rendered objects with those of a revision, which is rendered as of its own date.

    Raises:
        UsageError: There is no such revision.

    """
    try:
        with open_commit(project.root, git.resolve_commit(project.root, revision)) as folder:
            old = config.load(layout.own_layers(folder), today=project.today or folder.commit.date)
            chosen = [env for env in environments if env in old.overlays] if environments else old.environments()
            write = to_json if format == "json" else to_yaml
            found = render_jobs(old, chosen, matcher(jobs), RenderTask(write, deployable=True)) if chosen else None
            before = {(made.env, made.identity): made.object for made in found.objects} if found else {}
    except git.GitError as error:
        raise UsageError(str(error)) from error
    changed = tuple(one for one in rendered.objects if before.get((one.environment, one.identity)) != one.text)
    now = {(one.environment, one.identity) for one in rendered.objects}
    gone: dict[Identity, list[str]] = {}
    for env, identity in before:
        if (env, identity) not in now:
            gone.setdefault(identity, []).append(env)
    kept = tuple(env for env in rendered.environments if any(one.environment == env for one in changed))
    return ChangedObjects(
        rendered._replace(objects=changed, environments=kept),
        tuple((identity, tuple(envs)) for identity, envs in gone.items()),
        sum(finding.severity is Severity.ERROR for finding in found.findings) if found else 0,
    )
