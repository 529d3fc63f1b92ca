"""The cache of written trees: if no input and no file of the tree has changed, nothing is rendered.

An entry says which lock files the render of some inputs has. Each run compares the files of the tree with these lock
files: by their stat, or by their content where a stat is new or too recent to be trusted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobgen import __version__, cache
from jobgen.model.digest import blake2b
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.result_cache import FileStat, digest_files, is_racy, stat_file, to_file_stat
from jobgen.repo import layout
from jobgen.repo.atomic import links_outside
from jobgen.repo.root import find_root, is_source_folder
from jobgen.repo.tree_faults import matches_lock
from jobgen.repo.tree_files import find_environments, holds_only_tree, stat_files


class TreeRequest(NamedTuple):
    """The tree of all jobs that is written or compared."""

    path: Path
    """A folder of the repository."""
    folder: Path
    envs: Sequence[str]
    """The environments that were named; without them, the tree has those of the repository and no others."""
    format: str
    today: str


class TreeInputs(NamedTuple):
    """Everything that a tree depends on: the key of its cache entry, and a digest of the files."""

    request: TreeRequest
    root: Path
    key: str
    digest: str
    settled: bool
    """Whether no job was modified so recently that another change could keep its modification time."""


def read_inputs(request: TreeRequest) -> TreeInputs | None:
    """Return what a tree depends on; None if that is more than files, or the cache is disabled."""
    path, folder, envs, *options = request
    root = find_root(path.resolve()) if cache.is_enabled() and path.is_dir() else None
    if root is None:
        return None
    moment = time.time_ns()
    layers = digest_files(layout.read_inputs(root))
    stats: list[tuple[str, FileStat]] = []
    for entry in layout.find_jobs(root):
        found = stat_file(entry.full) if entry.finding is None else None
        if found is None:
            return None
        stats.append((entry.path, found))
    key = cache.make_key("tree", __version__, str(root), str(folder.absolute()), *options, *envs)
    return TreeInputs(request, root, key, _digest_stats(stats, layers), _are_settled(stats, moment))


def count_unchanged(inputs: TreeInputs | None) -> int | None:
    """Return the number of objects of the tree if the files on disk are exactly those of its lock files, else None."""
    kept = cache.get_data(inputs.key) if inputs else None
    if inputs is None or kept is None or kept[0] != inputs.digest:
        return None
    _, objects, locks, known = kept
    folders = {inputs.request.folder / env: lock for env, lock in locks.items()}
    try:
        if not _can_hold_tree(inputs, locks):
            return None
        moment = time.time_ns()
        files = [each for folder, lock in folders.items() if lock for each in _stat_tree(folder)]
    except OSError:
        return None
    stats = _digest_stats(files)
    if stats != known:
        if not all(matches_lock(folder, lock) for folder, lock in folders.items() if lock):
            return None
        if _are_settled(files, moment):
            cache.put_data(inputs.key, (inputs.digest, objects, locks, stats))
    return int(objects)


def put(inputs: TreeInputs | None, objects: int, locks: Mapping[str, str]) -> None:
    """Cache that a tree is up to date if it has these lock files: their digests, by environment.

    The stat of files that have just been written proves nothing, so the next run reads them.
    """
    if inputs is None or not inputs.settled or not objects:
        return
    # If an input changed during the run, its digest does not describe the tree.
    if read_inputs(inputs.request) == inputs:
        cache.put_data(inputs.key, (inputs.digest, objects, locks, None))


def _can_hold_tree(inputs: TreeInputs, locks: Mapping[str, str]) -> bool:
    """Whether only the files of environments have to be compared: no link, and no environment that is gone."""
    root, folder = inputs.root, inputs.request.folder
    for env, lock in locks.items():
        if is_source_folder(root, folder / env) or (os.path.lexists(folder / env) and not lock):
            return False
    if links_outside(folder, root) or not all(holds_only_tree(folder / env) for env, lock in locks.items() if lock):
        return False
    return bool(inputs.request.envs) or locks.keys() >= set(find_environments(folder))


def _stat_tree(folder: Path) -> list[tuple[str, FileStat]]:
    return [(path, to_file_stat(status)) for path, status in stat_files(folder)]


def _digest_stats(stats: Sequence[tuple[str, FileStat]], layers: bytes = b"") -> str:
    return blake2b(layers + repr(stats).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _are_settled(stats: Sequence[tuple[str, FileStat]], moment: int) -> bool:
    return not any(is_racy(found, moment) for _, found in stats)
