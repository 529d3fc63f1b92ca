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
from jobgen.api.lint_shard import digest_entry, digest_layers
from jobgen.api.recognized_files import recognize_files
from jobgen.pipeline.decoded_results import decode_parts
from jobgen.pipeline.file_result import FileParts


def merge_lints(directory: Path, parts: Sequence[Mapping[str, Any]]) -> LintResult:
    """Return the lint of all files, of which shards have linted each one.

    Raises:
        UsageError: The files in the directory are not those that the shards linted, or two shards linted one.
        TypeError, ValueError, LookupError, AttributeError: Results cannot be read.

    """
    request, baseline = _read_request(directory, parts)
    return lint_request(request._replace(known=_find_known(request, parts)), baseline=baseline)


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
    if options["layers"] != digest_layers(request):
        raise UsageError("settings or layers differ from those that the shards linted; check out the same commit")
    return request, str(options["baseline"])


def _find_known(request: LintRequest, parts: Sequence[Mapping[str, Any]]) -> dict[tuple[bool, str], FileParts]:
    """The results of all files. A file whose results no report may contain, such as one with secrets, has none."""
    found: dict[tuple[bool, str], tuple[str, Any]] = {}
    for data in parts:
        for alone, path, digest, plain in data["files"]:
            if found.setdefault((alone, path), (digest, plain)) != (digest, plain):
                # One of them would hide the findings of the other.
                raise UsageError(f"two reports have different results of `{path}`; run the shards again")
    files = resolve_files(request)
    entries = {(False, entry.path): entry for entry in files.jobs}
    if files.standalone is not None:
        entries |= {(True, entry.path): entry for entry in recognize_files(request, files).entries}
    for key in (*found, *entries):
        if key not in found or key not in entries or found[key][0] != digest_entry(entries[key]):
            raise UsageError(f"`{key[1]}` is not the file that the shards linted; check out the same commit")
    decoded = {key: decode_parts(plain, key[1]) for key, (_, plain) in found.items() if plain is not None}
    return {key: each for key, each in decoded.items() if each is not None}
