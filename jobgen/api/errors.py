"""The exceptions that the public functions raise. Mistakes in jobs, overlays and manifests are findings instead."""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jobgen.model.finding import Finding


class JobgenError(Exception):
    """The base class of all exceptions that jobgen raises; its text is a message for users."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)
        """Findings that explain the error, if any."""


class UsageError(JobgenError, ValueError):
    """An argument or `jobgen.yaml` is wrong. An argument of the wrong type is a TypeError instead."""


def check_names(argument: str, names: object) -> None:
    """Raise a TypeError if an argument is not a list of texts; a single text would be read as its letters."""
    if isinstance(names, (str, bytes)):
        raise TypeError(f"`{argument}` must be a list of strings, got one string; write [{names!r}]")
    if not isinstance(names, Sequence):
        raise TypeError(f"`{argument}` must be a list of strings, got {type(names).__name__}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"`{argument}` must be a list of strings, got {name!r} in it")


def check_format(name: object, known: Sequence[str]) -> None:
    """Raise a UsageError if there is no such format."""
    if name not in known:
        raise UsageError(f"there is no format `{name}` (known: {', '.join(known)})")


def check_severity(name: object, known: Sequence[str]) -> None:
    """Raise a UsageError if there is no such severity."""
    if name not in known:
        raise UsageError(f"there is no severity `{name}` (known: {', '.join(known)})")


def check_date(today: str) -> None:
    """Raise a UsageError if a text is neither empty nor a date."""
    if not today:
        return
    # Imported late: most commands use the date of the commit.
    from jobgen.model.times import is_date

    if not is_date(today):
        raise UsageError(f"`{today}` is not a date; write it as `2027-01-31`")


class NotFoundError(JobgenError):
    """Nothing matches the arguments: there is no such job, field or rule, or there are no files."""


class OperationError(JobgenError):
    """Files could not be read or written."""


class ToolError(JobgenError):
    """Another program, such as kubeconform, failed; or a fix cannot be applied without new errors."""
