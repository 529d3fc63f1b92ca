"""The result of a command: exit code, standard output and standard error."""

from __future__ import annotations

from jobgen.model.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jobgen.api.errors import JobgenError


class ExitCode:
    """Exit codes, the same for every command; plain numbers, because help does without the module `enum`."""

    OK = 0
    ERRORS = 1
    USAGE = 2
    NOTHING_TO_DO = 3
    INTERNAL_ERROR = 4


_ERROR_CODES = {
    "UsageError": ExitCode.USAGE,
    "NotFoundError": ExitCode.NOTHING_TO_DO,
    "OperationError": ExitCode.INTERNAL_ERROR,
    "ToolError": ExitCode.INTERNAL_ERROR,
}


class Result(NamedTuple):
    """What a command returns instead of printing and exiting."""

    code: int
    out: str = ""
    err: str = ""
    paged: bool = False
    """Whether a long output is shown in a pager, if it goes to a terminal."""


def error_result(code: int, message: str, err: str = "") -> Result:
    """Return the result of a command that ends early; the reason is its last line."""
    # Imported late: help and completion have no message.
    from jobgen.report.escape import visible

    return Result(code, err=f"{err}jobgen: {visible(message)}\n")


def to_result(error: JobgenError) -> Result:
    """Return the result of a command that an error ended."""
    from jobgen.report.summary import format_findings

    return error_result(_ERROR_CODES[type(error).__name__], str(error), format_findings(error.findings))
