"""The rendered trees that a repository declares, compared with what is rendered from its sources.

A tree and its lock files may both be edited, so the sources are rendered; only digests of the texts are kept. What the
files of a tree are compared with is its lock files, and these with the digests.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError
from jobgen.api.project import select_environments
from jobgen.api.render import find_origins, find_path_conflicts, make_extra_files, name_file, to_rendered_object
from jobgen.engine.inputs import FOLDER, MISSING
from jobgen.engine.store import Query, Store
from jobgen.model.data import Location, location_of, value_of
from jobgen.model.finding import Finding, Severity, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.decoded_results import decode_result
from jobgen.pipeline.encoded_results import encode_result
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import Rendered
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.load_layers import load_project
from jobgen.rendering.render_task import RenderTask, request_jobs
from jobgen.rendering.run import run
from jobgen.repo import git, layout
from jobgen.repo.commit import Folder, describe_path, list_folder_names
from jobgen.repo.layout import Layers
from jobgen.repo.lock import LOCK, LockFile, Origin, compute_digest
from jobgen.repo.rendered_tree import MAX_LOCK_BYTES, find_environments, read_content
from jobgen.repo.root import SETTINGS, SOURCE_FOLDERS
from jobgen.repo.tree_faults import FaultCause, TreeFault, TreeName, find_source_faults, find_tree_faults
from jobgen.yamlio.write import to_yaml

FIELD = "rendered"
"""The field of the settings that declares a tree."""
_FOLDER = lazy_pattern(r"[^./\\\s][^/\\]*(?:/[^./\\][^/\\]*)*\Z")
_RULE_OF_CAUSE = {
    FaultCause.STALE: "stale-rendered-tree",
    FaultCause.ABSENT: "stale-rendered-tree",
    FaultCause.NOT_COMPARED: "rendered-tree-not-compared",
    FaultCause.IGNORED: "ignored-rendered-tree",
}
_AT_DECLARATION = frozenset((*_RULE_OF_CAUSE, FaultCause.SUBMODULE, FaultCause.DOUBLE))
"""Causes that no file of the tree shows, so the finding is at the line that declares the tree."""


def digest_text(made: Any) -> str:
    """Return the digest of an object as `jobgen render` writes it."""
    return compute_digest(to_yaml(made))


def _encode(part: FileResult) -> str | None:
    outline = encode_result(part)
    return None if outline is None else f"{json.dumps([made.object for made in part.made])}\n{outline}"


def _decode(text: str) -> FileResult:
    digests, _, outline = text.partition("\n")
    part = decode_result(outline)
    made = [each._replace(object=digest) for each, digest in zip(part.made, json.loads(digests), strict=True)]
    return part._replace(made=made)


DIGESTS: Query[FileResult] = Query("digests", _encode, _decode)
"""The digests of the objects of a file in one environment."""


class Sources(NamedTuple):
    """What the sources of a repository render now."""

    locks: Mapping[str, LockFile]
    """The lock file that each environment should have."""
    files: Mapping[tuple[str, str], str]
    """The file of the job of each object, by environment and path."""
    errors: int
    """The number of errors because of which there may be other objects."""


def list_declared(layers: Layers) -> list[str]:
    """Return the folders of the trees that a repository declares, and of those that its judge does."""
    found = [layout.read_own_setting(side, FIELD) for side in (layers.judge, layers.root) if side is not None]
    folders = [value.rstrip("/") for value in map(value_of, found) if isinstance(value, str) and is_tree_folder(value)]
    return list(dict.fromkeys(folders))


def is_tree_folder(text: str) -> bool:
    """Return True if a text names a folder of the repository that may hold a tree."""
    return bool(_FOLDER.match(text.rstrip("/"))) and text.partition("/")[0] not in SOURCE_FOLDERS


def find_tree_findings(
    root: Folder, folders: Sequence[str], store: Store | None, envs: Sequence[str] = (), today: str = ""
) -> Iterator[tuple[Finding, str, str]]:
    """Compare trees with what the repository itself renders, whatever revision judges it.

    Yields each finding with the path of the file in its tree, and that of the job that it is about, if there is one.
    """
    own = load_project(store, layout.own_layers(root), today)
    known = frozenset(own.overlays) or frozenset(("",))
    written = [env for folder in folders for env in find_environments(root / folder) if env in known]
    sources = _render_sources(own, store, envs or [*own.environments(), *written])
    for folder in folders:
        for fault in _find_faults(own, folder, sources, known | sources.locks.keys()):
            relative = fault.path[len(fault.env) + 1 :] if fault.env else fault.path
            job = sources.files.get((fault.env, relative), "")
            yield _to_finding(root, folder, fault), f"{folder}/{fault.path}".rstrip("/"), job


def _render_sources(own: ProjectConfig, store: Store | None, envs: Sequence[str]) -> Sources:
    """Render the sources, or take the digests that the store has."""
    try:
        selected = select_environments(own, ())
        selected = list(dict.fromkeys(envs))
    except UsageError as error:
        return Sources({}, {}, max(1, len(error.findings)))
    task = RenderTask(digest_text, deployable=True, digested=True, query=DIGESTS)
    found = run(request_jobs(own, selected, task=task)._replace(store=store))
    made: dict[str, list[Rendered]] = {env: [] for env in selected}
    for one in found.objects:
        made[one.env].append(one)
    objects = [to_rendered_object(one, "yaml") for several in made.values() for one in several]
    findings = [*found.findings, *find_path_conflicts(objects)]
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if errors:
        return Sources({env: LockFile() for env in selected}, {}, errors)
    digests = {env: {name_file(one.identity): one.job_digest for one in several} for env, several in made.items()}
    origins = find_origins(own, digests)
    locks: dict[str, LockFile] = {}
    for env, several in made.items():
        files = {name_file(one.identity): str(one.object) for one in several}
        extras = make_extra_files(env, sorted(files)) if files else {}
        files |= {path: compute_digest(text) for path, text in extras.items()}
        locks[env] = LockFile(files, origins.get(env, Origin()))
    places = {(one.environment, one.path): one.location.file for one in objects}
    return Sources(locks, places, 0)


def _find_faults(own: ProjectConfig, folder: str, sources: Sources, known: Collection[str]) -> Iterator[TreeFault]:
    root, name = own.root, TreeName(folder, by_environment=True)
    tree = root / folder
    elsewhere = _find_elsewhere(root, folder)
    if elsewhere is not None:
        yield elsewhere
        return
    yield from _find_doubles(root, folder)
    yield from find_tree_faults(tree, known, name)
    if sources.errors:
        states = (read_content(tree / env / LOCK, MAX_LOCK_BYTES) or b"" for env in sorted(find_environments(tree)))
        state = compute_digest("\n".join(each.decode("utf-8", "replace") for each in states))
        message = f"`{folder}` was not compared with its sources, which have {pluralize(sources.errors, 'error')}"
        yield TreeFault("", FaultCause.NOT_COMPARED, message, f"see what `{name.command()}` says", state=state)
        return
    what = describe_path(tree)
    if what.startswith("link"):
        return
    if what.endswith(MISSING):
        if any(wanted.files for wanted in sources.locks.values()):
            yield TreeFault("", FaultCause.ABSENT, f"there is no folder `{folder}`", name.describe_repair())
        return
    for env, wanted in sources.locks.items():
        yield from find_source_faults(tree, env, wanted, name)
    yield from _find_ignored(root, folder, sources)


def _find_elsewhere(root: Folder, folder: str) -> TreeFault | None:
    """Return why the files of a tree are not those of the repository: a link above it, or a repository of its own."""
    parts = folder.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if describe_path(root / above).startswith("link"):
            message = f"`{above}`, which `{folder}` is in, is a symbolic link, so the tree can be anywhere"
            return TreeFault("", FaultCause.DOUBLE, message, "replace the link by a folder")
    if describe_path(root / folder) == FOLDER and describe_path(root / folder / ".git") != MISSING:
        message = (
            f"`{folder}` is a Git repository of its own, such as a submodule: a review of this one does not show it"
        )
        return TreeFault("", FaultCause.SUBMODULE, message, "make it a folder of this repository")
    return None


def _find_doubles(root: Folder, folder: str) -> Iterator[TreeFault]:
    """Report other folders that are the tree where names differ only in case."""
    above, _, last = folder.rpartition("/")
    names = list_folder_names(root / above) if describe_path(root / above).endswith(FOLDER) else ()
    for name in names:
        if name != last and name.casefold() == last.casefold():
            message = f"`{name}` and `{folder}` are one folder where names differ only in case"
            yield TreeFault("", FaultCause.DOUBLE, message, f"remove `{name}`")


def _find_ignored(root: Folder, folder: str, sources: Sources) -> Iterator[TreeFault]:
    """Report a tree of which Git would not commit all files."""
    if not isinstance(root, Path):
        return
    top = root
    for _ in filter(None, git.find_path_from_top(root).split("/")):
        top = top.parent
    # What Git reads is recorded, because the answer holds as long as it does not change.
    places = (".git/info/exclude", ".gitignore", *(f"{above}/.gitignore" for above in _list_above(root / folder, top)))
    found = [read_content(top / place) for place in places]
    if not any(found):
        return
    paths = [f"{folder}/{env}/{path}" if env else f"{folder}/{path}" for env, path in sources.files]
    paths += [f"{folder}/{env}/{LOCK}" if env else f"{folder}/{LOCK}" for env in sources.locks]
    hidden = git.find_ignored(root, paths)
    if hidden:
        message = f"`.gitignore` hides {pluralize(len(hidden), 'file')} of `{folder}`, such as `{hidden[0]}`"
        advice = "remove the pattern, or the files are never committed"
        yield TreeFault("", FaultCause.IGNORED, message, advice)


def _list_above(folder: Path, top: Path) -> list[str]:
    """Return the folders between the top of a Git repository and a folder, by their paths from the top."""
    parts = folder.relative_to(top).parts
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _to_finding(root: Folder, folder: str, fault: TreeFault) -> Finding:
    default = (
        "edited-rendered-file" if fault.is_listed or fault.cause is FaultCause.FORGED else "unlisted-rendered-file"
    )
    severity = Severity.WARNING if fault.cause is FaultCause.IGNORED else Severity.ERROR
    path = f"{folder}/{fault.path}".rstrip("/")
    location = _locate(root, folder) if fault.cause in _AT_DECLARATION else Location(path)
    evidence = (fault.cause.value, folder, fault.env, fault.path, fault.state or _digest_file(root / path))
    return Finding(
        _RULE_OF_CAUSE.get(fault.cause, default), "gitops", severity, fault.message, location, evidence=evidence
    )


def _digest_file(path: Folder) -> str:
    content = read_content(path)
    return compute_digest(content.decode("utf-8", "surrogateescape")) if content is not None else ""


def _locate(root: Folder, folder: str) -> Location:
    """Return where the settings of the repository declare a tree; their start if only its judge does."""
    value = layout.read_own_setting(root, FIELD, traced=True)
    declared = location_of(value) if value is not None and str(value_of(value)).rstrip("/") == folder else None
    return declared or Location(SETTINGS)
