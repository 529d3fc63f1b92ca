"""Write a rendered tree, or compare it with the files on disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jobgen import __version__
from jobgen.api.errors import OperationError, UsageError
from jobgen.api.project import Project
from jobgen.api.render import RenderResult
from jobgen.model.data import Plain, untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.repo import layout, rendered_tree
from jobgen.repo.atomic import links_outside
from jobgen.repo.lock import ATTRIBUTES, KUSTOMIZATION, Origin, digest_data, is_object_path
from jobgen.repo.rendered_tree import Drift, IncompleteWriteError, TreeExtras
from jobgen.repo.root import is_source_folder
from jobgen.repo.shipped import find_shipped
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.write import to_yaml

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


def check_folder(root: Path, folder: Path, environments: Sequence[str], *, is_new: bool = False) -> None:
    """Raise a UsageError if a tree cannot be written to a folder; with `is_new`, also if it has a tree."""
    if is_new and os.path.isdir(folder) and rendered_tree.find_environments(folder):
        # The tree of a shard would replace that of all jobs.
        raise UsageError(f"`{folder}` has a rendered tree; a shard writes its part to a new folder, such as `-o part`")
    if any(is_source_folder(root, folder / env) for env in environments):
        raise UsageError(f"`{folder}` contains input of jobgen; choose another folder")
    if links_outside(folder, root):
        raise UsageError(f"`{folder}` is outside the repository through a symbolic link; choose another folder")


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
    extras = TreeExtras(make_extra_files, find_origins(project.config, digests))
    return Tree(folder, {**removed, **wanted}, some_jobs, extras, allow_empty, allow_mass_delete)


def write_tree(tree: Tree, *, fsync: bool = True) -> dict[str, Drift]:
    """Bring a tree up to date and return what was different; with `fsync`, it is on the disk then.

    Nothing is written if a foreign file is in the way or too many files would be deleted.

    Raises:
        OperationError: Files could not be written.

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
        raise OperationError(f"{error.filename or tree.folder}: {error.strerror}; nothing was written") from error


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
    lost = Counter(_remove_hash(path) for path in drift.stale if is_object_path(path))
    return (lost - Counter(map(_remove_hash, drift.missing))).total()


def _remove_hash(path: str) -> str:
    """The path of an object without the hash of its run or of its content."""
    return _HASH.sub("", path)


_ATTRIBUTES = """\
# Written by jobgen: reviewers need not read these files, and their lines end alike everywhere.
*.yaml text eol=lf linguist-generated
*.json text eol=lf linguist-generated
.gitattributes text eol=lf linguist-generated
"""


def make_extra_files(env: str, objects: Sequence[str]) -> dict[str, str]:
    """Return the files beside the objects of an environment: for Flux, kustomize and Git."""
    kustomization: dict[str, Plain] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        **({"metadata": {"name": env}} if env else {}),
        "sortOptions": {"order": "fifo"},
        "resources": list(objects),
    }
    return {ATTRIBUTES: _ATTRIBUTES, KUSTOMIZATION: to_yaml(kustomization)}


def find_origins(project: ProjectConfig, jobs: Mapping[str, Mapping[str, str]]) -> dict[str, Origin]:
    """Return the digests of the input of each environment; `jobs` has the digest of the job of each file.

    Digests cover data and not text: comments, the order of keys and file names do not matter.
    """
    own = _own_kinds(project)
    runtimes = [untraced(dict(project.runtimes))] if project.runtimes else []
    return {
        env: Origin(__version__, digest_data([_overlay_specs(project, env), own, *runtimes]), digests)
        for env, digests in jobs.items()
        if digests
    }


def _own_kinds(project: ProjectConfig) -> list[Any]:
    """Return the kinds that a repository describes; those of jobgen itself belong to its version."""
    if find_shipped("schemas").parent == project.root:
        return []
    return [
        document
        for file in layout.read_own_kinds(project.root)
        for document in config.read_valid_documents(file, "kind", [])
    ]


def _overlay_specs(project: ProjectConfig, env: str) -> list[Plain]:
    names = sorted(list_ancestors(env, project.overlays))
    return [untraced(list(project.overlays[name].specs)) for name in names]
