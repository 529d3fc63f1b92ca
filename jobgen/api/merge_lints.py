"""Merge the lints of all shards.

The checkout that the shards linted is linted again with their results, so the merged report is that of one machine,
also where files are compared with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen import __version__
from jobgen.api.errors import UsageError, check_names
from jobgen.api.lint import LintResult, lint_request
from jobgen.api.lint_files import LintRequest, resolve_files
from jobgen.api.lint_shard import add_rows
from jobgen.api.recognized_files import recognize_files
from jobgen.engine.store import Store
from jobgen.render.prepare_run import digest_layers
from jobgen.render.result_inputs import digest_entry, name_entry
from jobgen.repo.root import find_root


def merge_lints(directory: Path, parts: Sequence[Mapping[str, Any]]) -> LintResult:
    """Return the lint of all files, of which shards have linted each one.

    Raises:
        UsageError: The files in the directory are not those that the shards linted, or two shards linted one.
        TypeError, ValueError, LookupError, AttributeError: Results cannot be read.

    """
    request, baseline = _read_request(directory, parts)
    _check_files(request, parts)
    store = Store()
    add_rows(store, parts)
    return lint_request(request, baseline=baseline, store=store)


def _read_request(directory: Path, parts: Sequence[Mapping[str, Any]]) -> tuple[LintRequest, str]:
    """The request of all shards, and the baseline."""
    options = parts[0]["options"]
    request = LintRequest(directory, options["paths"], options["envs"], today=options["today"])
    check_names("paths", request.paths)
    check_names("envs", request.envs)
    if any(data["version"] != __version__ for data in parts):
        raise UsageError(f"a report was written by another version of jobgen than {__version__}; use one version")
    if any(data["options"] != options for data in parts):
        raise UsageError("the reports are of different lints; run every shard with the same options and files")
    if options["layers"] != digest_layers(find_root(directory.resolve()) or directory):
        raise UsageError("settings or layers differ from those that the shards linted; check out the same commit")
    return request, str(options["baseline"])


def _check_files(request: LintRequest, parts: Sequence[Mapping[str, Any]]) -> None:
    """Raise a UsageError if the files are not those that the shards linted."""
    linted = {str(name): str(digest) for data in parts for name, digest in data["files"]}
    files = resolve_files(request)
    entries = [*files.jobs, *(recognize_files(request, files).entries if files.standalone is not None else ())]
    found = {name_entry(entry): digest_entry(entry) for entry in entries}
    for name in (*linted, *found):
        if linted.get(name) != found.get(name):
            path = name.partition("\0")[0]
            raise UsageError(f"`{path}` is not the file that the shards linted; check out the same commit")
