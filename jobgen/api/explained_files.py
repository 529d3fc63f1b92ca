"""How jobgen reads the files of a jobs repository: what each folder is for decides, and nothing is guessed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobgen.engine.inputs import real_path
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.files import MANIFEST_SUFFIXES, FileEntry, read_file
from jobgen.repo.root import SETTINGS, SOURCE_FOLDERS, has_settings, holds_layers, is_repository
from jobgen.repo.walk import walk_all

_SPEC = lazy_pattern(r"""(?m)^(?:kind:[ \t]*["']?TrainingJob\b|[ \t]*["']kind["']\s*:\s*"TrainingJob")""")
_MANIFEST = lazy_pattern(r"(?i)\.(?:ya?ml|json)(?:[.~]|\Z)")
_NOT_READ = "not read"
_SORTS = {
    "defects": ("defects", "the defects of operators that the repository adds are in defects/"),
    "jobs": ("object", "what is in jobs/ is rendered or checked in each environment"),
    "overlays": ("overlay", "the layers of the environments are in overlays/"),
    "policies": ("policy", "the policies of the repository are in policies/"),
    "runtimes": ("runtime", "the runtimes of TrainJobs are in runtimes/"),
    "schemas": ("schema", "the schemas and kinds of the repository are in schemas/"),
    "teams": ("team", "the teams and what they own are in teams/"),
    "tests": ("job tests", "the tests of jobs are in tests/"),
}
"""What the files of a folder are, and why."""


def explain_files(root: Path, directory: Path, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return what each file of a jobs repository below some paths is taken for, and why, by its path from the root."""
    if not is_repository(root):
        return {}
    wanted = [real_path(str(directory / path)) for path in paths if path != "-"] or [real_path(str(root))]
    found = {SETTINGS: ("settings", "the settings of a repository are in jobgen.yaml")} if has_settings(root) else {}
    for top in (*SOURCE_FOLDERS, "tests"):
        if top in ("jobs", "tests") or holds_layers(root, top):
            found |= {entry.path: _explain(top, entry) for entry in _list_entries(root, top)}
    at = real_path(str(root))
    return {file: each for file, each in found.items() if _is_below(os.path.join(at, file), wanted)}


def _is_below(full: str, wanted: Sequence[str]) -> bool:
    return any(full == each or full.startswith(os.path.join(each, "")) for each in wanted)


def _list_entries(root: Path, top: str) -> Iterator[FileEntry]:
    """Yield the files of a folder that are YAML or JSON, also under another name."""
    return (entry for entry in walk_all(root, top, MANIFEST_SUFFIXES) if _MANIFEST.search(entry.path))


def _explain(top: str, entry: FileEntry) -> tuple[str, str]:
    if entry.finding is not None:
        return _NOT_READ, f"`{entry.finding.rule}` is reported for it"
    if entry.skipped:
        return _NOT_READ, f"its name says so ({entry.skipped})"
    sort, why = _SORTS[top]
    parts = entry.path.split("/")
    if top == "overlays" and len(parts) > 2:
        return sort, f"a layer of `{parts[1]}`, and of what extends it"
    if top == "policies" and parts[1] == "tests":
        return "policy tests", "the test cases of policies are in policies/tests/"
    if top == "jobs" and _SPEC.search(read_file(entry).content.decode(errors="replace")):
        return "job spec", "it is a TrainingJob, which jobgen renders in each environment"
    return sort, why
