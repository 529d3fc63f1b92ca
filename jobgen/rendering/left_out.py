"""What a run cannot render: jobs of a file, or an environment as a whole, each with the errors that prevent it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.model.data import Plain, value_of
from jobgen.model.finding import Finding, Severity, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.environment import name_overlay
from jobgen.rendering.file_result import FileResult
from jobgen.repo.files import FileEntry, read_file
from jobgen.reports.entries import group_findings
from jobgen.spec.overlay import Overlay, list_ancestors
from jobgen.yamlio.read import read_shared

_MAX_NAMES = 10


class LeftOut(NamedTuple):
    """Jobs of a file, or an environment, that cannot be rendered."""

    file: str
    """The file of the jobs; empty for an environment as a whole."""
    env: str | None
    """The environment; None for all of them, because the job cannot be read."""
    names: tuple[str, ...]
    """The names of the jobs, as far as they are known."""
    errors: tuple[Finding, ...]

    def concerns(self, file: str, env: str) -> bool:
        """Return True if it is about the jobs of a file in an environment."""
        return self.file in ("", file) and self.env in (None, env)


class LeftOutFile(NamedTuple):
    """What cannot be rendered of a file, or an environment, in all environments together."""

    file: str
    """The file of the jobs; empty for an environment as a whole."""
    environments: tuple[str, ...]
    """The environments that lack the jobs; empty for all of them."""
    names: tuple[str, ...]
    """The names of the jobs, as far as they are known."""
    errors: tuple[Finding, ...]

    def describe(self) -> str:
        """Return what cannot be rendered, in one line without the errors."""
        envs = ", ".join(filter(None, self.environments))
        if not self.file:
            return f"environment {envs}"
        names = ", ".join(self.names[:_MAX_NAMES]) + (" …" if len(self.names) > _MAX_NAMES else "")
        return f"{self.file}{f' ({names})' if names else ''}{f' in {envs}' if envs else ''}"

    def explain(self) -> str:
        """Return what cannot be rendered, and the first error."""
        errors = group_findings(self.errors)
        if not errors:
            return self.describe()
        more = f" and {pluralize(len(errors) - 1, 'more error')}" if len(errors) > 1 else ""
        return f"{self.describe()}: {errors[0].finding.message} ({errors[0].finding.location}){more}"

    def to_plain(self) -> dict[str, Plain]:
        """Return it for JSON."""
        return {
            "file": self.file,
            "envs": list(self.environments),
            "jobs": list(self.names),
            "errors": [
                {
                    "rule": error.rule,
                    "message": error.message,
                    "file": error.location.file,
                    "line": error.location.line,
                    "column": error.location.column,
                    "env": error.env,
                }
                for error in self.errors
            ],
        }


def join_environments(left_out: Iterable[LeftOut]) -> list[LeftOutFile]:
    """Return each file, and each environment, once."""
    several: dict[str, list[LeftOut]] = {}
    for each in left_out:
        several.setdefault(each.file or f"{each.env}/", []).append(each)
    return [
        LeftOutFile(
            found[0].file,
            # What cannot be read is missing everywhere.
            () if any(each.env is None for each in found) else tuple(dict.fromkeys(each.env or "" for each in found)),
            tuple(dict.fromkeys(name for each in found for name in each.names)),
            tuple(dict.fromkeys(error for each in found for error in each.errors)),
        )
        for found in several.values()
    ]


def name_left_out(what: str, left_out: Iterable[LeftOutFile]) -> str:
    """Return the end of a message that names what is left out; empty if nothing is."""
    named = list(dict.fromkeys(each.file or each.describe() for each in left_out))
    more = f" and {len(named) - _MAX_NAMES} more" if len(named) > _MAX_NAMES else ""
    return f"; {what}: {', '.join(named[:_MAX_NAMES])}{more}" if named else ""


def find_in_file(entry: FileEntry, environments: Sequence[str], parts: Sequence[FileResult]) -> Iterator[LeftOut]:
    """Yield the jobs of a file that have errors: in all environments, then in each of these."""
    own, *others = parts
    if own.unrendered:
        yield LeftOut(entry.path, None, tuple(_name_unreadable(entry, parts)), _select_errors(own.findings))
    for env, part in zip(environments, others, strict=True):
        if part.unrendered:
            names = tuple(dict.fromkeys(filter(None, part.unrendered)))
            yield LeftOut(entry.path, env, names, _select_errors(part.findings))


def _name_unreadable(entry: FileEntry, parts: Sequence[FileResult]) -> Iterator[str]:
    """Yield the names of documents that are not valid jobs."""
    valid = {position for _, position, _ in parts[0].jobs}
    file = read_file(entry)
    for position, document in enumerate(() if file.finding else read_shared(file.content, file.path).documents):
        metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
        name = value_of(metadata.get("name")) if isinstance(metadata, dict) else None
        if position not in valid and isinstance(name, str):
            yield name


def find_environments(
    environments: Sequence[str], valid: Sequence[str], findings: Sequence[Finding], overlays: Mapping[str, Overlay]
) -> Iterator[LeftOut]:
    """Yield the environments that are not valid, with the errors of their overlays."""
    for env in environments:
        if env not in valid:
            chain = list_ancestors(env, overlays)
            yield LeftOut("", env, (), tuple(each for each in _select_errors(findings) if name_overlay(each) in chain))


def _select_errors(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(each for each in findings if each.severity is Severity.ERROR)
