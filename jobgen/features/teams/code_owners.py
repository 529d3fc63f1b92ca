"""Write the lines of CODEOWNERS that say who reviews the folders of teams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.spec.teams import Team

_BEGIN = "# begin of the lines that `jobgen codeowners` writes from teams/"
_END = "# end of the lines that `jobgen codeowners` writes"


def write_owners(text: str, teams: Sequence[Team], prefix: str) -> str:
    """Return the text of CODEOWNERS with the lines of the teams; other lines stay as they are.

    `prefix` is the path from the top of the Git repository to the jobs repository.
    """
    block = "\n".join((_BEGIN, *_list_lines(teams, prefix), _END)) + "\n"
    before, found, rest = text.partition(f"{_BEGIN}\n")
    if not found:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{block}"
    _, end, after = rest.partition(_END)
    # Without its end, nothing says where the block stops, so the lines after it are kept.
    return before + block + (after.removeprefix("\n") if end else rest)


def _list_lines(teams: Sequence[Team], prefix: str) -> Iterator[str]:
    """Yield a line for each folder; those of parts of a folder come later, because the last line that matches wins."""
    # A line without owners would say that changes need no review, also where an earlier line names owners.
    rows = [(folder, team.owners) for team in teams for folder in team.folders if team.owners]
    for folder, owners in sorted(rows):
        path = "/".join(filter(None, (prefix, folder)))
        yield " ".join((f"/{_escape(path)}/", *owners))


def _escape(path: str) -> str:
    return "".join(f"\\{letter}" if letter in " #\\" else letter for letter in path)
