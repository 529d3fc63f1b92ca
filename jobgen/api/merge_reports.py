"""Merge the reports of shards into the report of one run."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen import __version__
from jobgen.api.errors import JobgenError, UsageError, check_format, check_names
from jobgen.api.lint import lint_request
from jobgen.api.lint_files import LintRequest, resolve_files
from jobgen.api.lint_shard import LINT, add_rows
from jobgen.api.recognized_files import recognize_files
from jobgen.engine.store import Store
from jobgen.model.features import find_part, has_part
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.result_inputs import digest_entry, name_entry
from jobgen.rendering.run_state import digest_layers
from jobgen.repo.root import find_root
from jobgen.reports import formats
from jobgen.reports.entries import summarize
from jobgen.reports.shard_part import (
    MAX_VALUES,
    SHARD_PROPERTY,
    BrokenPartError,
    ShardPart,
    parse_json,
    parse_part,
    unpack,
)

if TYPE_CHECKING:
    from jobgen.api.project import ProjectPath


FORMATS = ("json", "junit", "sarif")
_MAX_BYTES = 128 * 1024 * 1024
_MAX_FILES = 1000


class MergedReport(NamedTuple):
    """The report of all shards."""

    command: str
    """`lint` or `test`."""
    text: str
    """The report, exactly as one run writes it."""
    failed: bool
    """True if one run would fail."""
    incomplete: bool = False
    """True if a broken schema or policy prevented checks."""
    summary: str = ""
    """The last line of a lint."""
    findings: tuple[Finding, ...] = ()
    """The findings of a lint, or the errors that kept tests from running."""


class _Report(NamedTuple):
    file: str
    format: str
    part: ShardPart
    data: Mapping[str, Any]
    values: int
    """How many values the data can have."""


def merge_reports(path: ProjectPath, files: Sequence[str], *, format: str = "") -> MergedReport:  # noqa: A002 -- option
    """Merge the reports of all shards of a lint, or of a run of tests.

    Those of a lint are merged in the checkout that the shards linted.

    Args:
        path: A project, or the folder in which the shards ran.
        files: Reports in JSON, SARIF or JUnit, from `path`.
        format: The format to write; by default that of the reports.

    Raises:
        UsageError: A report is missing or broken, or does not belong to the others.

    """
    check_names("files", files)
    directory = Path(path) if isinstance(path, (str, os.PathLike)) else path.root
    if not files or len(files) > _MAX_FILES:
        raise UsageError(f"name the reports of all shards: 1 to {_MAX_FILES} files")
    found: list[_Report] = []
    for file in dict.fromkeys(files):
        found.append(_read(directory, file, MAX_VALUES - sum(report.values for report in found)))
    reports = _select(found)
    chosen = format or reports[0].format
    check_format(chosen, FORMATS)
    if not format and len({report.format for report in reports}) > 1:
        raise UsageError("the reports have different formats; choose one with `--format`")
    command, parts = reports[0].data["command"], [report.data for report in reports]
    try:
        merged: MergedReport
        if command == LINT:
            merged = _merge_lints(directory, parts, reports[0].part, chosen)
        else:
            merged = find_part(f"merge_reports.{command}")(parts, chosen)
    except BrokenPartError as error:
        raise UsageError(str(error)) from error
    except JobgenError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        # Somebody may have changed a report, so that any value has any type.
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"the results in the reports cannot be read ({reason})") from error
    return merged


def _select(reports: Sequence[_Report]) -> list[_Report]:
    """The report of each shard. That of one shard may be there twice if it is the same."""
    count = reports[0].part.shard.total
    by_index: dict[int, _Report] = {}
    for report in reports:
        if report.data["command"] != reports[0].data["command"]:
            raise UsageError(f"`{report.file}` is a report of `jobgen {report.data['command']}`, others are not")
        options = (report.part.shard.total, report.part.fail_on, report.part.show_suppressed)
        if options != (count, reports[0].part.fail_on, reports[0].part.show_suppressed):
            raise UsageError(f"`{report.file}` does not belong to `{reports[0].file}`: it is of another run")
        first = by_index.setdefault(report.part.shard.number, report)
        if first.data != report.data:
            raise UsageError(f"`{first.file}` and `{report.file}` are different reports of {report.part.shard}")
    missing = [str(index) for index in range(1, count + 1) if index not in by_index]
    if missing:
        several = "shard" if len(missing) == 1 else "shards"
        raise UsageError(f"{several} {', '.join(missing)} of {count} {'is' if len(missing) == 1 else 'are'} missing")
    return [by_index[index] for index in sorted(by_index)]


def _merge_lints(
    directory: Path,
    parts: Sequence[Mapping[str, Any]],
    first: ShardPart,
    format: str,  # noqa: A002 -- as above
) -> MergedReport:
    """Lint all files with the results of the shards, of which each one is in one shard.

    Raise a UsageError if the files in the directory are not those that the shards linted, or two shards linted one.
    """
    options = parts[0]["options"]
    request = LintRequest(directory, options["paths"], options["envs"], today=options["today"])
    check_names("paths", request.paths)
    check_names("envs", request.envs)
    if any(data["version"] != __version__ for data in parts):
        raise UsageError(f"a report was written by a jobgen version other than {__version__}; use one version")
    if any(data["options"] != options for data in parts):
        raise UsageError("the reports are of different lints; run every shard with the same options and files")
    if options["layers"] != digest_layers(find_root(directory.resolve()) or directory):
        raise UsageError("settings or layers differ from what the shards linted; check out the same commit")
    linted = {str(name): str(digest) for data in parts for name, digest in data["files"]}
    files = resolve_files(request)
    entries = [*files.jobs, *(recognize_files(request, files).entries if files.standalone is not None else ())]
    found = {name_entry(entry): digest_entry(entry) for entry in entries}
    for name in (*linted, *found):
        if linted.get(name) != found.get(name):
            path = name.partition("\0")[0]
            raise UsageError(f"`{path}` is not the file that the shards linted; check out the same commit")
    store = Store()
    add_rows(store, parts)
    result = lint_request(request, baseline=str(options["baseline"]), store=store)
    report = result.to_report(format, show_suppressed=first.show_suppressed)
    failed = result.has_findings(Severity(first.fail_on))
    text = formats.FORMATS.render(format, report)
    return MergedReport(LINT, text, failed, result.incomplete, summarize(report), result.findings)


def _read(directory: Path, file: str, most: int) -> _Report:
    """Read a report with at most this many values."""
    try:
        # A pipe without a writer must not block.
        with open(os.open(directory / file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UsageError(f"`{file}` is not a regular file; name the report that a shard wrote")
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from error
    if not content.strip():
        raise UsageError(f"`{file}` is empty; did the run of this shard end with an error?")
    if len(content) > _MAX_BYTES:
        raise UsageError(f"`{file}` is larger than {_MAX_BYTES >> 20} MiB; use more shards")
    try:
        name, plain = _find_shard(content)
        part = parse_part(plain)
        data, values = unpack(part.results, most)
    except BrokenPartError as error:
        raise UsageError(f"`{file}`: {error}") from error
    command = data.get("command") if isinstance(data, dict) else None
    if command != LINT and not has_part(f"merge_reports.{command}"):
        raise UsageError(f"`{file}`: its results cannot be read")
    return _Report(file, name, part, data, values)


def _find_shard(content: bytes) -> tuple[str, object]:
    """The format of a report, and what it says about its shard."""
    if content.lstrip()[:1] != b"<":
        document = parse_json(content)
        if not isinstance(document, dict):
            raise BrokenPartError("jobgen did not write this report")
        if "runs" not in document:
            return "json", document.get("shard")
        runs = document["runs"]
        run = runs[0] if isinstance(runs, list) and runs else None
        properties = run.get("properties") if isinstance(run, dict) else None
        return "sarif", properties.get("shard") if isinstance(properties, dict) else None
    from xml.parsers import expat

    found: list[str] = []

    def note_start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "property" and attributes.get("name") == SHARD_PROPERTY:
            found.append(attributes.get("value", ""))

    def reject(*_: object) -> None:
        # It may define entities that expand to anything.
        raise BrokenPartError("it has a document type, which no report has")

    parser = expat.ParserCreate()
    parser.StartElementHandler = note_start
    parser.StartDoctypeDeclHandler = reject
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise BrokenPartError("it is neither JSON nor XML, or it is not complete") from error
    return "junit", parse_json(found[0].encode()) if found else None
