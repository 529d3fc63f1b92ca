"""The help of commands as text, so that showing it imports neither click nor the command.

`tools/build_completion.py` writes the texts with click; `tests/test_help_texts.py` writes them again and compares.
"""

from __future__ import annotations

import os

from jobgen.cli.terminal import is_narrower_than
from jobgen.model.features import is_as_shipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "help")
"""A file for each command: `lint.txt`, `policy.test.txt`, and `jobgen.txt` for all."""
WIDTH = 80
"""The columns of a terminal for which the texts are written; wider ones get the same."""
_OPTIONS = ("-h", "--help")


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the last argument asks for help."""
    return bool(arguments) and arguments[-1] in _OPTIONS


def find_help(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the help that the arguments ask for; None if they ask for something else, or click must format it."""
    *names, last = arguments or ("",)
    if last not in _OPTIONS or len(names) > 2 or not all(name.replace("-", "").isalpha() for name in names):
        return None
    if "COLUMNS" in environ or is_narrower_than(WIDTH):
        return None
    try:
        if not is_as_shipped():
            return None
        with open(os.path.join(FOLDER, name_file(names)), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def name_file(names: Sequence[str]) -> str:
    """Return the name of the file for a command."""
    return f"{'.'.join(names) or 'jobgen'}.txt"
