"""Compare two states of a jobs repository or of manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from jobgen.api.errors import NotFoundError, UsageError, check_date, check_format, check_names
from jobgen.api.project import Project, ProjectPath
from jobgen.api.tree_entries import add_charts, list_tree_entries
from jobgen.compare.changes import ChangeSet, NotCompared, QueueChanges, compare_snapshots
from jobgen.compare.effects import describe
from jobgen.compare.formats import FORMATS
from jobgen.compare.governance import Change as Governed
from jobgen.compare.governance import find_begun, find_changes
from jobgen.compare.impact import FieldImpact, Impact
from jobgen.compare.snapshot import (
    Snapshot,
    SummaryError,
    find_equal_files,
    find_layers_around,
    is_repository,
    snapshot_entries,
    snapshot_repository,
    snapshot_tree,
)
from jobgen.engine.store import Store
from jobgen.k8s.redaction import redact_at, redact_path
from jobgen.k8s.secrets import find_secrets
from jobgen.model.data import Location, Plain
from jobgen.model.features import find_part, has_part
from jobgen.model.finding import Finding, Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted, format_pointer
from jobgen.model.suggest import suggest_or
from jobgen.rendering.left_out import join_environments
from jobgen.repo import git, layout
from jobgen.repo.commit import CommitPath, Folder, open_commit
from jobgen.repo.files import read_file
from jobgen.repo.root import explain_absence, find_root, lacks_jobs, open_store

# Branches that changes are usually merged into, in the order in which they are tried.
_DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")

HTML = "html"
"""The format that shows more than the changes alone: also findings."""

DELTA = "delta"

Render = Callable[[Folder, str, Sequence[str], str], Snapshot]
"""Makes a snapshot from a folder, its name, environments and a date."""
Action = Literal["added", "removed", "changed"]


def format_names() -> list[str]:
    """Return the names of all formats."""
    return sorted((*FORMATS.names(), HTML) if has_part("diff.html") else FORMATS.names())


class ChangedField(NamedTuple):
    """A field of an object that changed."""

    field: str
    """A dotted path into the object."""
    pointer: str
    """The same path as a JSON pointer."""
    old: Plain
    new: Plain
    effect: str
    """What the change of this field does to a running job, such as `in-place` or `new-run`."""
    reason: str


class ChangedObject(NamedTuple):
    """An object that was added, removed or changed."""

    action: Action
    environment: str
    identity: Identity
    """The new identity, or the old one if the object was removed."""
    location: Location
    """Where its job is written."""
    effect: str
    """What the change does to a running job, such as `in-place` or `new-run`: the most severe of `effects`."""
    reason: str
    stops: bool
    """True if pods that may be running are deleted."""
    fields: tuple[ChangedField, ...]
    effects: tuple[str, ...] = ()
    """All effects, the most severe first."""
    summary: str = ""
    """All effects in a sentence, with the requests that change."""


class DiffResult(NamedTuple):
    """What changes between two states."""

    base: str
    """The name of the old state."""
    head: str
    """The name of the new state."""
    objects: tuple[ChangedObject, ...]
    """The changed objects, the most severe effects first."""
    unchanged: int
    """The number of unchanged objects."""
    text: str
    """The comparison in the requested format; if it failed, empty, or with `html` the page with the errors."""
    findings: tuple[Finding, ...]
    """The errors because of which jobs are not compared; if `failed`, those of that state."""
    failed: str
    """The name of the state because of which nothing is compared; empty if there is a comparison."""
    queues: tuple[QueueChanges, ...] = ()
    """What changes in the queues of environments that have a ClusterQueue."""
    texts: Mapping[str, str] = MappingProxyType({})
    """The comparison in each of the formats, by name: of `format` and `more_formats`; only `html` if it failed."""
    not_compared: tuple[NotCompared, ...] = ()
    """What one of the states cannot render: it is neither added nor removed."""
    governance: tuple[Governed, ...] = ()
    """What changes in the settings, teams, policies and schemas that judge a change."""
    tree: tuple[Finding, ...] = ()
    """What of the declared trees is not what the new state renders, and was not so in the old one."""


def diff(
    path: ProjectPath = ".",
    revisions: str = "",
    *,
    folders: tuple[str, str] | None = None,
    environments: Sequence[str] = (),
    format: str = "text",  # noqa: A002 -- the name of the option
    today: str = "",
    repo_url: str | None = None,
    more_formats: Sequence[str] = (),
) -> DiffResult:
    """Compare two commits, a commit and the work tree, or two folders.

    Args:
        path: A project, or a folder in a Git repository.
        revisions: `BASE` is compared with the work tree; `BASE..HEAD` are two commits; `BASE...HEAD` starts at their
            merge base. The default is the commit where the branch left the default branch.
        folders: Two folders to compare instead: jobs repositories, rendered trees, or folders of manifests.
        environments: Names of environments; by default all.
        format: The format of `DiffResult.text`: `text`, `markdown`, `json`, `html` or `delta`.
        today: The date by which jobs expire, as `YYYY-MM-DD`; by default that of each commit.
        repo_url: Where the repository can be browsed, such as `https://github.com/example/jobs`, or a template with
            `{revision}`, `{file}` and `{line}`, for links of `html`; by default the remote `origin` says it, and with
            `""` there are no links.
        more_formats: Further formats, for `DiffResult.texts`; both states are rendered only once.

    Raises:
        UsageError: An argument is wrong: a revision, a folder, an environment, a format or a date; or the format needs
            a package that is not installed.
        NotFoundError: There is no job in either state.

    """
    check_names("environments", environments)
    check_names("more_formats", more_formats)
    wanted = dict.fromkeys((format, *more_formats))
    for name in wanted:
        check_format(name, format_names())
    if DELTA in wanted and find_spec("deepdiff") is None:
        raise UsageError("the format `delta` needs the Python package `deepdiff`; run `pip install 'jobgen[delta]'`")
    if folders and revisions:
        raise UsageError("`folders` replaces `revisions`; give one of them")
    check_date(today)
    directory = path.root if isinstance(path, Project) else Path(path)
    today = today or (path.today if isinstance(path, Project) else "")
    snapshots = partial(_make_snapshots, directory, revisions, folders, environments, today)
    finish = partial(_diff, find_root(directory.resolve()) or directory, environments, wanted, format, repo_url)
    try:
        # The page shows more of objects than whether they change.
        if HTML not in wanted:
            with suppress(SummaryError), snapshots(with_objects=False) as (old, new):
                return finish(old, new)
        with snapshots(with_objects=True) as (old, new):
            return finish(old, new)
    except git.GitError as error:
        raise UsageError(str(error)) from error


def _diff(
    home: Path,
    environments: Sequence[str],
    wanted: Iterable[str],
    first: str,
    repo_url: str | None,
    old: Snapshot,
    new: Snapshot,
) -> DiffResult:
    changes = _compare(old, new, environments)
    tree = _find_tree_findings(home, old, new, environments)
    if isinstance(changes, DiffResult):
        # The page says why nothing was compared; the other formats print nothing then.
        failure = {HTML: find_part("diff.html").render_failure(old, new, home, repo_url)} if HTML in wanted else {}
        return changes._replace(text=failure.get(first, ""), texts=failure, tree=tree)
    changes = changes._replace(tree=tree)
    texts: dict[str, str] = {}
    for name in wanted:
        if name == HTML:
            texts[name] = find_part("diff.html").render_page(changes, home, environments, repo_url)
        else:
            texts[name] = FORMATS.render(name, changes)
    objects, names = tuple(map(_to_object, changes.impacts)), (old.name, new.name)
    errors = tuple(dict.fromkeys((*old.errors, *new.errors)))
    made = DiffResult(*names, objects, changes.unchanged, texts[first], errors, "", changes.queues, texts)
    return made._replace(not_compared=changes.not_compared, governance=changes.governance, tree=tree)


def _compare(old: Snapshot, new: Snapshot, environments: Sequence[str]) -> ChangeSet | DiffResult:
    """Return what changes, or the result without a comparison if one of the states cannot be rendered."""
    known = {*old.project.overlays, *old.environments, *new.project.overlays, *new.environments}
    for env in environments:
        if env not in known:
            names = sorted(filter(None, known))
            hint = suggest_or(env, names, f"choose one of {', '.join(names)}" if names else "write its overlay")
            raise UsageError(f"there is no environment `{env}` in either state{hint}")
    unusable = next((side for side in (old, new) if side.is_unusable), None)
    sides = old.project.root, new.project.root
    files = (*layout.read_layers(layout.own_layers(sides[1])), *map(read_file, layout.find_jobs(sides[1])))
    governance = (*find_changes(*sides), *find_begun(*sides, files, old.project.mandatory))
    changes = None if unusable else compare_snapshots(old, new)
    if changes is None or not (changes.impacts or changes.unchanged):
        failed = unusable or next((side for side in (old, new) if side.failed), None)
        if failed is None:
            left_out = next((each.explain() for each in join_environments([*new.left_out, *old.left_out])), "")
            advice = f"fix what is left out: {left_out}" if left_out else "write one with `jobgen new NAME`"
            raise NotFoundError(f"there is no job to compare in {old.name} or {new.name}; {advice}")
        return DiffResult(old.name, new.name, (), 0, "", tuple(failed.errors), failed.name, governance=governance)
    # Of a secret that changes, only this is shown.
    held = old.secrets | new.secrets
    changes = changes._replace(impacts=tuple(_redact(each, held) for each in changes.impacts), governance=governance)
    find_queue_changes = find_part("diff.queues")
    if find_queue_changes:
        changes = changes._replace(queues=tuple(find_queue_changes(changes.old, changes.new, changes.impacts)))
    return changes


def _find_tree_findings(home: Path, old: Snapshot, new: Snapshot, environments: Sequence[str]) -> tuple[Finding, ...]:
    """Return what is wrong with the trees that one of the states declares, and was not wrong in the old one."""
    layers = [side.project.layers for side in (old, new)]
    if any(side.is_tree for side in (old, new)) or not any(map(layout.may_declare_tree, layers)):
        return ()
    from jobgen.api.declared_tree import find_tree_findings, list_declared
    from jobgen.api.since import Side, find_new
    from jobgen.pipeline.finish import OF_REPORT, Finishing, finish

    folders = list(dict.fromkeys(folder for each in reversed(layers) for folder in list_declared(each)))
    store, sides = open_store(home), list[Side]()
    for side in (new, old):
        envs = [env for env in environments if env in side.project.overlays]
        found = find_tree_findings(side.project.root, folders, store, envs, side.project.today)
        # A change does not decide how severe its own faults are.
        findings = [old.project.apply_severity(finding) for finding, *_ in found]
        sides.append(Side([*filter(None, findings)], (side.folder,)))
        store.save()
        if not sides[0].findings:
            return ()
    return tuple(finish(find_new(*sides), Finishing(old.project.mandatory), OF_REPORT))


def _redact(impact: Impact, held: frozenset[str]) -> Impact:
    """Return an impact without secrets: its own, and those that are `held` by other objects of its chart."""
    sides = (impact.old, impact.new) if impact.fields else ()
    objects = [made.object if made else None for made in sides]
    secrets = frozenset[str]().union(*map(find_secrets, objects), held if impact.fields else ())
    if not secrets:
        return impact
    fields: list[FieldImpact] = []
    for change, outcome in impact.fields:
        values = zip((change.old, change.new), objects, strict=True)
        old, new = (redact_at(value, obj, change.path, secrets) for value, obj in values)
        path = redact_path(objects[1] or objects[0], change.path, secrets)
        fields.append(FieldImpact(change._replace(path=path, old=old, new=new), outcome))
    return impact._replace(fields=tuple(fields))


def _to_object(impact: Impact) -> ChangedObject:
    assert impact.action != "unchanged"
    made = impact.current
    fields: list[ChangedField] = []
    for (path, _, old, new), outcome in impact.fields:
        names = format_dotted(path), format_pointer(path)
        fields.append(ChangedField(*names, old, new, outcome.effect.value, outcome.reason))
    identity = impact.action, made.env, made.identity, made.location
    outcome, effects = impact.outcome, tuple(effect.value for effect in impact.effects)
    summary = describe(impact, impact.before, impact.after)
    return ChangedObject(*identity, outcome.effect.value, outcome.reason, impact.stops, tuple(fields), effects, summary)


@contextmanager
def _make_snapshots(
    directory: Path,
    revisions: str,
    folders: tuple[str, str] | None,
    environments: Sequence[str],
    today: str,
    *,
    with_objects: bool,
) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Make the two snapshots; the files of commits can be read until the end of the block.

    With `with_objects`, all objects are rendered, also those of files that are equal.
    """
    # What is equal on both sides is rendered once.
    store = open_store(directory)
    if folders:
        for name in folders:
            if not (directory / name).is_dir():
                raise UsageError(explain_absence(directory / name, name))
        sides_of_folders: list[Snapshot] = []
        for name, path in ((name, directory / name) for name in folders):
            has_jobs = is_repository(path) and not lacks_jobs(path)
            render_folder: Render = partial(_snapshot_manifests, directory)
            if has_jobs:
                render_folder = partial(_snapshot_repository, path, store, frozenset())
            sides_of_folders.append(render_folder(path, name, environments, today))
        yield sides_of_folders[0], sides_of_folders[1]
        return
    root = find_root(directory.resolve())
    home = root or directory
    commits = _resolve_revisions(home, revisions)
    with ExitStack() as stack:
        opened = [stack.enter_context(open_commit(home, commit[1])) if commit else home for commit in commits]
        render: Render = partial(_snapshot_manifests, home)
        if root and not all(map(_lacks_jobs, opened)):
            equal = find_equal_files(*opened) if store.is_kept and not with_objects else frozenset()
            render = partial(_snapshot_repository, home, store, equal)
        sides: list[Snapshot] = []
        for folder, commit in zip(opened, commits, strict=True):
            name, date = "work tree", today
            if commit and isinstance(folder, CommitPath):
                # A commit is rendered on its own date, unless another date is given.
                name = commit[0] if commit[1].startswith(commit[0]) else f"{commit[0]} ({commit[1][:10]})"
                date = today or folder.commit.date
            sides.append(render(folder, name, environments, date))
        yield sides[0], sides[1]


def _lacks_jobs(folder: Folder) -> bool:
    """Return True if all of a folder is manifests."""
    return lacks_jobs(folder) or not is_repository(folder)


def _snapshot_repository(
    home: Path, store: Store, equal: frozenset[str], folder: Folder, name: str, environments: Sequence[str], today: str
) -> Snapshot:
    """Render a jobs repository, with the charts beside its jobs if no environment is named."""
    jobs = snapshot_repository(folder, name, environments, today, store, equal)
    return jobs if environments else add_charts(jobs, home, today)


def _snapshot_manifests(home: Path, folder: Folder, name: str, environments: Sequence[str], today: str) -> Snapshot:
    """Read a folder of manifests, with what its charts and kustomizations make if it has charts."""
    entries = list_tree_entries(home, folder, None)
    if entries is None:
        return snapshot_tree(folder, name, environments, today)
    return snapshot_entries(folder, find_layers_around(folder), name, entries, today)


Commit = tuple[str, str]
"""A name that users give a commit, and its hash."""


def _resolve_revisions(root: Path, revisions: str) -> tuple[Commit, Commit | None]:
    """Return the two commits; None on the right is the work tree."""
    for dots in ("...", ".."):
        left, found, right = revisions.partition(dots)
        if found:
            base, head = (_resolve(root, name or "HEAD") for name in (left, right))
            if dots == "...":
                base = (base[0], git.find_merge_base(root, base[1], head[1]))
            return base, head
    return (_resolve(root, revisions) if revisions else find_default_base(root)), None


def _resolve(root: Path, name: str) -> Commit:
    try:
        return name, git.resolve_commit(root, name)
    except git.GitError as error:
        if name and name == Path(name).name and (root / "overlays" / name).is_dir():
            message = f"`{name}` is an environment, and no revision; write `jobgen diff -e {name}`"
            raise git.GitError(f"{message}, or `jobgen diff REVISION -e {name}`") from error
        raise


def find_default_base(root: Path) -> Commit:
    """Return where this branch left the default branch; without a default branch, the last commit."""
    head = _resolve(root, "HEAD")
    for name in _DEFAULT_BRANCHES:
        try:
            other = git.resolve_commit(root, name)
        except git.GitError:
            continue
        return name, git.find_merge_base(root, other, head[1])
    if git.is_shallow(root):
        # The last commit may be the only one, and compared with it nothing would ever change.
        raise git.GitError("this shallow clone does not have the default branch; fetch it, or name the base")
    return head
