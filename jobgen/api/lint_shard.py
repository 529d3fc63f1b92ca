"""Lint a share of the files: pack the results of its files into its report, so that all reports can be merged."""

from __future__ import annotations

from hashlib import blake2b

from jobgen import __version__
from jobgen.api.lint_files import LintRequest, LintRun
from jobgen.pipeline.encoded_results import EncodedParts, encode_parts
from jobgen.pipeline.file_result import FileParts
from jobgen.pipeline.result_cache import digest_files
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, read_file
from jobgen.repo.root import find_root
from jobgen.report.shard_part import ShardPart, pack

LINT = "lint"


def pack_shard(request: LintRequest, linted: LintRun, baseline: str) -> ShardPart:
    """Return the share of a lint, with the results of its files."""
    assert request.shard is not None
    results = [
        [alone, entry.path, digest_entry(entry), _encode(entry, parts)] for alone, entry, parts in linted.results
    ]
    options = {
        "paths": list(request.paths),
        "envs": list(request.envs),
        "today": request.today,
        "baseline": baseline,
        "layers": digest_layers(request),
    }
    data = {"command": LINT, "version": __version__, "options": options, "files": results}
    return ShardPart(request.shard, "error", pack(data))


def _encode(entry: FileEntry, parts: FileParts) -> EncodedParts | None:
    """The results of a file as plain data; None if they depend on the date, or may contain a secret."""
    return None if any(part.used.days for part in parts) else encode_parts(parts, entry.path)


def digest_entry(entry: FileEntry) -> str:
    """Return the digest of the content of a file."""
    return blake2b(read_file(entry).content, digest_size=16).hexdigest()


def digest_layers(request: LintRequest) -> str:
    """Return the digest of everything but jobs that a lint depends on."""
    return digest_files(layout.read_own_inputs(find_root(request.directory.resolve()) or request.directory)).hex()
