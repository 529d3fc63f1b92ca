"""The candidates for a value: names of a repository, of rules, of revisions, and paths."""

from __future__ import annotations

from jobgen.cli.completion.table import Completed
from jobgen.model.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType
    from typing import Any

_PATHS = ("file", "folder")
_SECONDS = 2.0
"""How long a user waits for names of a repository; then there are no candidates."""


class LateError(BaseException):
    """The time is over."""


class Candidate(NamedTuple):
    """A line for the script of a shell."""

    sort: str
    """`word`, `part` if no space follows it, or `file` and `folder` for those that the shell finds itself."""
    text: str = ""
    help: str = ""


def list_candidates(completed: Completed, table: dict[str, Any]) -> Iterator[Candidate]:
    """Yield what can come next; candidates may not fit the text that is there."""
    yield from (Candidate("word", name, text) for name, text in completed.names.items())
    yield from (Candidate("word", word) for word in completed.slot.words)
    directory = completed.options.get("-C") or completed.options.get("--directory") or ""
    for sort in completed.slot.takes:
        if sort in _PATHS:
            paths = _list_paths(directory, completed.word, sort)
            yield from _limit_time(paths) if directory else [Candidate(sort)]
        elif sort == "rule":
            yield from (Candidate("word", name) for name in table["rules"])
        if sort in _NAMES:
            yield from _limit_time(_list_names(sort, directory, completed))


def _list_paths(directory: str, word: str, sort: str) -> Iterator[Candidate]:
    """Paths from the folder of `-C`, which the shell cannot know."""
    from jobgen.repo.walk import list_paths

    for path in list_paths(directory, word):
        if path.endswith("/"):
            yield Candidate("part", path)
        elif sort == "file":
            yield Candidate("word", path)


def _list_names(sort: str, directory: str, completed: Completed) -> Iterator[Candidate]:
    from pathlib import Path

    yield from (Candidate("word", name) for name in _NAMES[sort](Path(directory), completed))


def _limit_time(candidates: Iterator[Candidate]) -> list[Candidate]:
    """The candidates from a folder, which may be large, or on a disk that does not answer."""
    # Imported late: most completions look at no folder.
    import signal

    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        return list(candidates)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end(_: int, __: FrameType | None) -> None:
    raise LateError


def _in_repository(name: str) -> Callable[[Path, Completed], Sequence[str]]:
    """Return a function that lists names of the repository, by a function of `repo.names`."""

    def list_names(directory: Path, _: Completed) -> Sequence[str]:
        # Imported late: most completions need no repository.
        from jobgen.repo import names
        from jobgen.repo.root import find_root

        root = find_root(directory.resolve())
        found: list[str] = getattr(names, name)(root) if root else []
        return found

    return list_names


def _list_fields(directory: Path, completed: Completed) -> Sequence[str]:
    """The fields of the job that is named before; none for a rule."""
    if completed.arguments[0] not in _in_repository("list_jobs")(directory, completed):
        return ()
    from jobgen.api.explain import list_fields

    env = completed.options.get("-e") or completed.options.get("--env")
    return list_fields(directory, completed.arguments[0], [env] if env else ())


def _list_revisions(directory: Path, completed: Completed) -> Sequence[str]:
    """Branches and tags, also as the end of a range."""
    from jobgen.repo.git import list_references

    base, dots, _ = completed.word.rpartition("..")
    return [f"{base}{dots}{name}" for name in list_references(directory.resolve())]


_NAMES: dict[str, Callable[[Path, Completed], Sequence[str]]] = {
    "environment": _in_repository("list_environments"),
    "team": _in_repository("list_teams"),
    "job": _in_repository("list_jobs"),
    "rule": _in_repository("list_policies"),
    "field": _list_fields,
    "revision": _list_revisions,
}
