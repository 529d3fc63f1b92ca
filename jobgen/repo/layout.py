"""The layout of a repository: the folders of jobs, overlays, teams, runtimes, kinds, schemas, policies and state."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jobgen.engine.inputs import exists, exists_itself, is_file, is_link, read_start
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern, may_mention
from jobgen.model.limits import MAX_WALKED_BYTES, MAX_WALKED_FILES
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import files
from jobgen.repo.atomic import links_outside
from jobgen.repo.commit import CommitPath, Folder, read_committed
from jobgen.repo.files import MANIFEST_SUFFIXES, File, FileEntry, read_file
from jobgen.repo.root import LAYER_FOLDERS, SETTINGS, SOURCE_FOLDERS, folder_exists, has_settings, holds_layers
from jobgen.repo.shipped import PACKS_FOLDER, find_shipped, mark_built_in, read_shipped_kinds
from jobgen.repo.walk import ExcludePattern, find_one, is_excluded, list_paths, walk_all, walk_files, walk_folder

FOLDER = PACKS_FOLDER

SETTING = "policies"
"""The list of packs in the settings."""


class Pack(NamedTuple):
    """A pack of policies: with another pack that it includes, except the policies that its own make stricter."""

    name: str
    description: str
    includes: str = ""
    replaces: frozenset[str] = frozenset()


PACKS = (
    Pack("pss-baseline", "the level baseline of the Pod Security Standards"),
    Pack(
        "pss-restricted",
        "the level restricted of the Pod Security Standards, with baseline",
        includes="pss-baseline",
        replaces=frozenset(
            f"pss-baseline-{control}.yaml" for control in ("capabilities", "host-path", "proc-mount", "seccomp")
        ),
    ),
    Pack("supply-chain", "where images come from, and how they are pinned"),
    Pack("cost", "labels, GPUs, deadlines, node pools and overcommitment"),
    Pack("kueue", "queues, priorities and requests"),
)
PACK_NAMES = tuple(pack.name for pack in PACKS)


def read_packs(settings: File | None) -> tuple[str, ...]:
    """The packs that a settings file turns on. Names that are not packs have findings of their own."""
    if settings is None or not may_mention(settings.content, SETTING.encode()):
        return ()
    # Imported late: most repositories turn on no pack.
    from jobgen.yamlio.read import read

    source = read(settings.content, settings.path)
    for document in (*source.documents, *source.repaired)[:1]:
        listed = document.data.get(SETTING)
        named = {value_of(node) for node in listed if isinstance(node, str)} if isinstance(listed, list) else set()
        return tuple(name for name in PACK_NAMES if name in named)
    return ()


def list_folders(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The folders of packs and of those that they include, each with the files that are left out of it."""
    wanted = set(names)
    folders = {FOLDER + pack.name: frozenset[str]() for pack in PACKS if pack.name in wanted}
    for pack in PACKS:
        if pack.name in wanted and pack.includes:
            folders[FOLDER + pack.includes] = pack.replaces
    return folders


_ALL_FOLDERS = {FOLDER + name: frozenset[str]() for name in PACK_NAMES}
_OWN_SCHEMA = lazy_pattern(r"schemas/(?P<group>[^/]+)/[^/_]+_(?P<version>v[a-z0-9]+)\.json")
_STATE = lazy_pattern(
    r"""\bstate["']?[ \t]*:[ \t]*["']?([^\s"'#,}\]][^"'#,}\]\r\n]*?)["']?[ \t]*(?:[#,}\]\r\n]|$)""", re.MULTILINE
)

POLICIES = "policies"
_POLICY_TESTS = f"{POLICIES}/tests"
_BACKUPS = ("~", ".bak", ".disabled", ".dist", ".example", ".off", ".old", ".orig", ".rej", ".sample", ".swp")


def find_jobs(root: Folder) -> Iterator[FileEntry]:
    """Find all files under jobs/, ordered by path."""
    return walk_files(root, "jobs", MANIFEST_SUFFIXES)


def find_sources(root: Folder, top: str) -> Iterator[FileEntry]:
    """Find all files under a folder that people write in; a skipped file that holds an object has a finding."""
    return (_note_unread(entry) for entry in walk_all(root, top, MANIFEST_SUFFIXES))


def find_source(root: Path, file: str) -> FileEntry | None:
    """Find one file of these folders, by its path from the root, as `find_sources` does; None if it is a folder."""
    entry = find_one(str(root), file, MANIFEST_SUFFIXES)
    return _note_unread(entry) if entry else None


def _note_unread(entry: FileEntry) -> FileEntry:
    is_top = entry.path.startswith("schemas/") and entry.path.count("/") == 1 and not (entry.skipped or entry.finding)
    has_other_name = entry.skipped == files.OTHER_EXTENSION and not entry.path.endswith(_BACKUPS)
    if not (is_top or has_other_name) or not files.starts_object(entry):
        return entry
    message = "the file holds an object but is not read; its name must end in `.yaml`, `.yml` or `.json`"
    if is_top:
        message = "the file is not read; move it to the folder of its API group, `schemas/<group>/`"
    return files.report_unread_path(entry.path, message)


def list_starter_frameworks() -> list[str]:
    """The frameworks that `jobgen init` has an example job for."""
    return [os.path.basename(entry.path).removesuffix(".yaml") for entry in find_jobs(find_shipped("starter"))]


class Layers(NamedTuple):
    """Where the layers of a repository are read from: itself, and the revision of it that decides what is checked.

    That is whose settings, teams, policies, schemas and captured states count. A policy or a schema that only the
    repository has counts too, unless it replaces one that jobgen ships.
    """

    root: Folder
    judge: CommitPath | None
    """None if its own count."""

    @property
    def judging(self) -> Layers | None:
        """The layers of the revision that decides, which nothing judges."""
        return Layers(self.judge, None) if self.judge is not None else None


def own_layers(root: Folder) -> Layers:
    """Return the layers of a folder or a commit that no other revision judges."""
    return Layers(root, None)


_JUDGING_FOLDERS = frozenset(("defects", "policies", "schemas", "teams"))
_BESIDE = "beside:"
"""The beginning of the path of a file that is an input beside one with the same path."""


def _walk_layers(layers: Layers, top: str, suffixes: tuple[str, ...] = MANIFEST_SUFFIXES) -> Iterator[FileEntry]:
    """Find the files of a folder of layers, if it is one of jobgen's."""
    root = layers.root
    # Most repositories have two of the folders: who owns the others is not asked.
    is_there = isinstance(root, CommitPath) or exists_itself(os.path.join(root, top))
    found = walk_files(root, top, suffixes) if is_there and (holds_layers(root, top) or is_home(root)) else iter(())
    judging = layers.judging if top in _JUDGING_FOLDERS else None
    if judging is None:
        return found
    # Imported late: most runs have no judge.
    from jobgen.repo.policy_kinds import only_validates

    kept = {entry.path: entry for entry in _walk_layers(judging, top, suffixes)}
    added = {} if top == "teams" else {entry.path: entry for entry in found if entry.path not in kept}
    for path, entry in added.items():
        is_stricter = not replaces_shipped(path) and (top != POLICIES or only_validates(read_file(entry).content))
        kept |= {path: entry} if is_stricter else {}
    return iter(sorted(kept.values(), key=lambda entry: entry.path))


def replaces_shipped(path: str) -> bool:
    """Return True if a policy has the path of one that jobgen ships, or of one in a pack."""
    home, inside = find_shipped("policies").parent, path.removeprefix(f"{POLICIES}/")
    shipped = (path, *(f"{FOLDER}{name}/{inside}" for name in PACK_NAMES))
    return inside != path and any((home / each).is_file() for each in shipped)


def read_overlays(layers: Layers) -> Iterator[tuple[str, File]]:
    """Read all files of overlays/<env>/; yield the name of the environment with each."""
    for entry in _walk_layers(layers, "overlays"):
        parts = entry.path.split("/")
        yield (parts[1] if len(parts) > 2 else ""), read_file(entry)


def read_runtimes(layers: Layers) -> Iterator[File]:
    """Read the runtimes of TrainJobs, in runtimes/."""
    return map(read_file, _walk_layers(layers, "runtimes"))


def read_teams(layers: Layers) -> Iterator[File]:
    """Read the teams, in teams/."""
    return map(read_file, _walk_layers(layers, "teams"))


def read_kinds(layers: Layers) -> Iterator[File]:
    """Read the kind descriptions: the shipped ones, then those of the repository, which override them."""
    added = list_added_kinds(layers)
    own = list(read_own_kinds(layers))
    # Those that only the repository has come first: they describe no kind that others describe.
    yield from (file for file in own if file.path in added)
    if find_shipped("schemas").parent != layers.root:
        yield from read_shipped_kinds()
    yield from (file for file in own if file.path not in added)


def list_added_kinds(layers: Layers) -> frozenset[str]:
    """Return the paths of the kind descriptions that a repository has, and the revision that judges it has not."""
    judging = layers.judging
    if judging is None:
        return frozenset()
    return frozenset(file.path for file in read_own_kinds(layers)) - {file.path for file in read_own_kinds(judging)}


def read_own_kinds(layers: Layers) -> Iterator[File]:
    """Read the kind descriptions of a repository, each in the folder of its group."""
    for entry in _walk_layers(layers, "schemas", (".yaml", ".yml")):
        if entry.finding or entry.path.count("/") > 1:
            yield read_file(entry)


def read_own_schemas(layers: Layers) -> Iterator[tuple[str, File]]:
    """Read the JSON Schemas of kinds that a repository has, each with its apiVersion."""
    if find_shipped("schemas").parent == layers.root:
        return
    for entry in _walk_layers(layers, "schemas", (".json",)):
        found = _OWN_SCHEMA.fullmatch(entry.path)
        if found and found["group"] != "jobgen.dev":
            yield f"{found['group']}/{found['version']}", read_file(entry)


def read_layers(layers: Layers) -> Iterator[File]:
    """Read all files of a repository that are written by hand, except jobs: overlays, kinds, policies, settings."""
    for top in LAYER_FOLDERS:
        for entry in _walk_layers(layers, top, (".yaml", ".yml")):
            yield read_file(entry)
    found = read_settings(layers)
    if found:
        yield found


def read_layer_folders(layers: Layers, folders: Iterable[str]) -> Iterator[File]:
    """Read the manifests of some folders of layers."""
    return (read_file(entry) for top in folders for entry in _walk_layers(layers, top))


def find_state(layers: Layers, folder: str) -> Folder | None:
    """Return the revision that the exported state of a cluster is read from: the one that judges, if it has it."""
    sides = (layers.judge, layers.root) if folder else ()
    return next((side for side in sides if side is not None and folder_exists(side, folder)), None)


def read_state(layers: Layers, folder: str) -> Iterator[File]:
    """Read the exported state of a cluster: all manifests below a folder of the repository."""
    root = find_state(layers, folder)
    if root is None:
        return
    if isinstance(root, Path) and links_outside(root / folder, root):
        yield read_file(files.report_link_outside(folder))
        return
    size = 0
    for count, entry in enumerate(walk_files(root, folder, MANIFEST_SUFFIXES)):
        size += files.measure_file(entry) if entry.content is None else len(entry.content)
        if count >= MAX_WALKED_FILES or size > MAX_WALKED_BYTES:
            yield read_file(files.report_too_many_files(folder))
            return
        yield read_file(entry)


def _list_state_folders(content: bytes) -> list[str]:
    if b"state" not in content:
        return []
    texts = (match[1] for match in _STATE.finditer(content.decode("utf-8", "replace")))
    return [text.strip("/") for text in texts if ".." not in text and not text.startswith((".", "/"))]


def read_inputs(layers: Layers) -> Iterator[File]:
    """Read the files of the repository, except jobs, that a lint depends on.

    Where another revision judges, its overlays and the repository's own settings count as well, unless they are the
    same: so equal layers are equal inputs, whatever revision judges.
    """
    overlays, judging = list(map(read_file, _walk_layers(layers, "overlays"))), layers.judging
    settings, beside = read_settings(layers), list[File]()
    added = list_added_kinds(layers)
    if judging is not None:
        # The locks, clusters and states of its overlays, and the environments and the version of the own settings.
        beside += map(read_file, _walk_layers(judging, "overlays"))
        beside = [] if beside == overlays else beside
        beside += (file for file in [_read_settings_file(layers.root)] if file and file != settings)
    for top in LAYER_FOLDERS:
        yield from overlays if top == "overlays" else map(read_file, _walk_layers(layers, top))
    if added:
        # Kind descriptions that are added do not count for the limits of teams.
        yield from (
            file._replace(path=f"{_BESIDE}{file.path}") for file in read_own_kinds(layers) if file.path in added
        )
    if settings:
        yield settings
    # Their paths are those of other files.
    yield from (file._replace(path=f"{_BESIDE}{file.path}") for file in beside)
    stating = (*overlays, *beside, *([settings] if settings else ()))
    for folder in sorted({folder for file in stating for folder in _list_state_folders(file.content)}):
        yield from read_state(layers, folder)


def read_schema(layers: Layers, name: str) -> File | None:
    """Read the JSON Schema that a repository has for a kind; the name comes from a manifest, so it is untrusted."""
    if ".." in name or os.path.isabs(name):
        return None
    path, root = f"schemas/{name}", layers.root
    if layers.judging is not None and (judged := read_schema(layers.judging, name)):
        return judged
    if isinstance(root, CommitPath):
        is_own = ((root / path).is_file() or (root / path).leads_out()) and holds_layers(root, "schemas")
        return read_file(read_committed(root / path, path, root)) if is_own else None
    full = os.path.join(root, path)
    is_own = is_file(full) and (holds_layers(root, "schemas") or is_home(root))
    return files.read_path(full, path, root) if is_own else None


def read_shipped_policies(layers: Layers, *, all_packs: bool = False) -> Iterator[File]:
    """Read the shipped policies that no file of the repository replaces, with the packs of the settings, or all."""
    home = find_shipped("policies").parent
    own = {entry.path for entry in _find_policies(layers)}
    mark = (lambda file: file) if is_home(layers.root) else mark_built_in
    if not is_home(layers.root):
        yield from (mark(read_file(entry)) for entry in _find_policies(own_layers(home)) if entry.path not in own)
    folders = _ALL_FOLDERS if all_packs else list_folders(find_packs(layers))
    for entry in _find_pack_files(home, folders):
        # A file replaces one of a pack with the same path, or that without the folder of the pack.
        inside = entry.path.removeprefix(FOLDER).partition("/")[2]
        if own.isdisjoint((entry.path, f"policies/{inside}")):
            yield mark(read_file(entry))


def find_packs(layers: Layers) -> tuple[str, ...]:
    """The packs of policies that the settings of a repository turn on."""
    return read_packs(read_settings(layers))


def list_pack_policies(pack: str) -> list[str]:
    """The names of the policies of a pack, with those of the pack that it includes."""
    entries = _find_pack_files(find_shipped("policies").parent, list_folders([pack]))
    # Their params are in a folder below.
    paths = (entry.path for entry in entries if entry.path.removeprefix(FOLDER).count("/") == 1)
    return sorted(os.path.splitext(os.path.basename(path))[0] for path in paths)


def find_pack_of(policy: str) -> str:
    """The pack that has a policy; empty if none has it."""
    entries = _find_pack_files(find_shipped("policies").parent, _ALL_FOLDERS)
    names = (entry.path.removeprefix(FOLDER).split("/") for entry in entries)
    return next((parts[0] for parts in names if parts[1:] == [f"{policy}.yaml"]), "")


def _find_pack_files(home: Path, folders: Mapping[str, frozenset[str]]) -> Iterator[FileEntry]:
    for folder, left_out in folders.items():
        for entry in walk_files(home, folder, MANIFEST_SUFFIXES):
            if os.path.basename(entry.path) not in left_out:
                yield entry


def read_own_policies(layers: Layers) -> Iterator[File]:
    """Read the policies of a repository, with their params and namespaces."""
    return map(read_file, _find_policies(layers))


def read_shipped_defects(components: Iterable[str] | None = None) -> Iterator[File]:
    """Read the defects that come with jobgen: all, or those of some components."""
    home = find_shipped("defects").parent
    known = None if components is None else frozenset(components)
    for entry in walk_files(home, "defects", (".yaml",)):
        if known is None or os.path.basename(entry.path).removesuffix(".yaml") in known:
            yield _read_shipped_defects(home, entry.path)


@cache
def _read_shipped_defects(home: Path, path: str) -> File:
    return mark_built_in(files.read_path(os.path.join(home, path), path, home))


def read_own_defects(layers: Layers) -> Iterator[File]:
    """Read the defects that a repository adds; those of a checkout of jobgen are shipped."""
    root = layers.root
    if not is_home(root) and not (root / "jobgen/repo/layout.py").is_file():
        yield from map(read_file, _walk_layers(layers, "defects"))


def find_policy_tests(root: Folder) -> Iterator[FileEntry]:
    """Find the test cases of policies, in a folder for each policy under policies/tests/."""
    return walk_files(root, _POLICY_TESTS, MANIFEST_SUFFIXES)


def _find_policies(layers: Layers) -> Iterator[FileEntry]:
    root = layers.root
    if isinstance(root, Path) and is_home(root):
        # The shipped policies that are always on: the folders of packs and of tests are not even listed.
        inside, full = os.path.join(os.path.realpath(root), ""), os.path.join(root, POLICIES)
        is_other = (_POLICY_TESTS, FOLDER.rstrip("/")).__contains__
        walked = walk_folder(full, POLICIES, MANIFEST_SUFFIXES, inside, is_other)
        yield from (entry for entry in walked if not entry.skipped)
        return
    # In a checkout of jobgen, which the jobgen that runs may not come from, packs are not in force either.
    is_checkout = (root / "jobgen/repo/layout.py").is_file()
    others = (f"{_POLICY_TESTS}/", FOLDER) if is_checkout else (f"{_POLICY_TESTS}/",)
    for entry in _walk_layers(layers, POLICIES):
        if entry.finding or not entry.path.startswith(others):
            yield entry


def is_home(root: Folder) -> bool:
    """Return True if a repository is the one that the shipped policies are in."""
    return find_shipped("policies").parent == root


def read_settings(layers: Layers) -> File | None:
    """Read the settings file, if there is one; that of the revision that judges."""
    return _read_settings_file(layers.judge or layers.root)


def may_declare_tree(layers: Layers) -> bool:
    """Return True if the settings of a repository, or those of its judge, may declare a rendered tree."""
    sides = (side for side in (layers.judge, layers.root) if side is not None)
    return any(file is not None and may_mention(file.content, b"rendered") for file in map(_read_settings_file, sides))


def read_own_setting(root: Folder, name: str, *, traced: bool = False) -> Any:
    """Return a field of the settings that a repository has itself, also if it is judged by others. It may be wrong."""
    file = _read_settings_file(root)
    if file is None or not may_mention(file.content, name.encode()):
        return None
    # Imported late: most callers need no field.
    from jobgen.yamlio.read import read

    documents = read(file.content, file.path, traced=traced).documents
    return documents[0].data.get(name) if documents and isinstance(documents[0].data, dict) else None


def _read_settings_file(root: Folder) -> File | None:
    if isinstance(root, CommitPath):
        file = root / SETTINGS
        return read_file(read_committed(file, SETTINGS, root)) if file.exists() or file.leads_out() else None
    full = os.path.join(root, SETTINGS)
    return files.read_path(full, SETTINGS, root) if exists(str(full)) or is_file(full) else None


_CUTOFF = 0.7
_MAX_MISNAMED = 200
_HEAD_BYTES = 2000
_OBJECT = lazy_pattern(
    r"""(?m)^(?:apiVersion:[ \t]*["']?jobgen\.dev/"""
    r"""|kind:[ \t]*["']?(?:\w+AdmissionPolicy|(?:Cluster)?TrainingRuntime)\b)"""
)
_OWN = lazy_pattern(r"""(?m)^apiVersion:[ \t]*["']?jobgen\.dev/""")
_KIND = lazy_pattern(r"""(?m)^kind:[ \t]*["']?(\w+)""")
_FOLDERS = {"TrainingJob": "jobs", "Overlay": "overlays", "Team": "teams", "Defects": "defects", "JobTests": "tests"}


def find_misnamed(root: Path, patterns: Sequence[ExcludePattern]) -> Iterator[FileEntry]:
    """Return a finding for each misplaced file at the root, and for the first object of each misnamed folder."""
    try:
        paths = list_paths(str(root), "")
    except OSError:
        return
    manifests = [path for path in paths if path.endswith(MANIFEST_SUFFIXES) and not is_excluded(path, patterns)]
    for path in manifests[:_MAX_MISNAMED]:
        full = str(root / path)
        text = "" if is_link(full) else read_start(full, _HEAD_BYTES).decode("utf-8", "replace")
        kind = _KIND.search(text) if _OWN.search(text) else None
        folder = _FOLDERS.get(kind[1], "") if kind else ""
        if folder:
            message = f"the file is not read; move it to `{folder}/`, or list it in `exclude`"
            yield files.report_unread_path(path, message)
    for name in (path[:-1] for path in paths if path.endswith("/")):
        if name in (*SOURCE_FOLDERS, *files.DEPENDENCY_FOLDERS) or has_settings(root / name):
            continue
        meant = _find_meant(name)
        entries = islice(walk_files(root, name, MANIFEST_SUFFIXES), _MAX_MISNAMED) if meant else ()
        for entry in entries:
            is_read = not is_excluded(entry.path, patterns)
            if is_read and _OBJECT.search(read_start(entry.full, _HEAD_BYTES).decode("utf-8", "replace")):
                message = (
                    f"the file is not read: jobgen reads `{meant}/`, not `{name}/`; move it, or list it in `exclude`"
                )
                yield files.report_unread_path(entry.path, message)
                break


def _find_meant(name: str) -> str:
    """Return the folder of jobgen that a name is a misspelling of; empty if it is none."""
    lowered = name.lower()
    common = {folder: (Counter(folder) & Counter(lowered)).total() for folder in SOURCE_FOLDERS}
    if not any(2 * count >= _CUTOFF * (len(lowered) + len(folder)) for folder, count in common.items()):
        return ""
    # Imported late: most folders have other names.
    from jobgen.model.suggest import find_closest

    return find_closest(name, list(SOURCE_FOLDERS), _CUTOFF)
