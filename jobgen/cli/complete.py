"""Complete command lines in a shell. click parses them; here is what their parameters take.

The scripts in `data/completion/` start jobgen with the variable `_JOBGEN_COMPLETE`; click's own scripts can complete
neither `--format=sa` nor the name of a job or a file. Each line of the answer is a sort, a text and its help, separated
by tabs. Whatever goes wrong, there are no candidates and no message: a message would end up in the middle of what the
user types.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from jobgen.cli.result import ExitCode, Result, finish
from jobgen.repo import names
from jobgen.repo.git import list_references
from jobgen.repo.known_rules import list_known_rules
from jobgen.repo.root import find_root
from jobgen.repo.walk import list_paths
from jobgen.reports.narrowing import CATEGORIES, PRESETS

SHELLS = ("bash", "zsh", "fish")
SCRIPTS = Path(__file__).parent.parent / "data" / "completion"
_SECONDS = 2.0
"""How long a user waits for names of a repository; then there are no candidates."""
_SORTS = {"plain": "word", "dir": "folder"}
"""What the scripts call the types of click. A `part` is a word after which no space follows."""
_SIGNS = str.maketrans("", "", "_.,:=@%+/[]~^-")

Items = list[CompletionItem[str]]


def complete(cli: click.Command, shell: str, arguments: Sequence[str]) -> int:
    """Print the candidates; the arguments are the words up to the cursor, for bash the line."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A folder may be large, or on a disk that does not answer.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ExitCode.OK))
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        lines = list(_list_lines(cli, shell, arguments)) if shell in SHELLS and arguments else []
    except Exception:  # noqa: BLE001 -- see above
        return ExitCode.OK
    signal.setitimer(signal.ITIMER_REAL, 0)
    finish(Result(ExitCode.OK, "".join(lines)))
    return ExitCode.OK


def _list_lines(cli: click.Command, shell: str, arguments: Sequence[str]) -> Iterator[str]:
    words = list(arguments)
    if shell == "bash":
        words = split_arg_string(arguments[0])
        words += [""] if arguments[0][-1:].isspace() else []
    *before, last = words[1:] or [""]
    lead = last[: last.index("=") + 1] if last.startswith("--") and "=" in last else ""
    found = ShellComplete(cli, {}, "jobgen", "_JOBGEN_COMPLETE").get_completions(before, last)
    # bash replaces only what follows the last separator.
    start = max(last.rfind("="), last.rfind(":")) + 1 if shell == "bash" else 0
    typed = last.removeprefix(lead)
    for item in found:
        sort = _SORTS.get(item.type, item.type)
        # Whatever a file is named or contains, a candidate is neither a command nor a sequence of the terminal.
        rest = str(item.value).translate(_SIGNS)
        is_safe = not rest or (rest.isascii() and rest.isalnum())
        if sort in ("word", "part") and item.value.startswith(typed) and is_safe:
            # Of the help of an option, the first sentence; that of a command is one already.
            summary = " ".join((item.help or "").partition("; ")[0].partition(". ")[0].split())
            yield f"{sort}\t{f'{lead}{item.value}'[start:]}\t{summary}\n"
        elif sort in ("file", "folder"):
            yield f"{sort}\t\t\n"


def complete_files(context: click.Context, _: click.Parameter, word: str) -> Items:
    """Complete a path of a file."""
    return _list_paths(context, word, "file")


def complete_folders(context: click.Context, _: click.Parameter, word: str) -> Items:
    """Complete a path of a folder."""
    return _list_paths(context, word, "dir")


def _list_paths(context: click.Context, word: str, sort: str) -> Items:
    """Leave paths to the shell, which knows how to quote them; it does not know the folder of `-C`."""
    directory = _find_directory(context)
    if not directory:
        return [CompletionItem("", sort)]
    paths = [path for path in list_paths(directory, word) if sort == "file" or path.endswith("/")]
    return [CompletionItem(path, "part" if path.endswith("/") else "plain") for path in paths]


def _find_directory(context: click.Context) -> str:
    """Return the folder of `-C`; empty without it."""
    root = context.find_root()
    if root.get_parameter_source("directory") is not click.core.ParameterSource.COMMANDLINE:
        return ""
    return str(root.params["directory"])


def complete_revisions(context: click.Context, _: click.Parameter, word: str) -> Items:
    """Complete a branch or tag, also as the end of a range."""
    base, dots, _end = word.rpartition("..")
    names = list_references(Path(_find_directory(context)).resolve())
    return [CompletionItem(f"{base}{dots}{name}") for name in names]


def _complete_names(list_names: Callable[[Path], Iterable[str]]) -> Callable[..., Items]:
    """Return a function that completes names of the repository."""

    def complete_names(context: click.Context, _: click.Parameter, __: str) -> Items:
        root = find_root(Path(_find_directory(context)).resolve())
        return [CompletionItem(name) for name in (list_names(root) if root else ())]

    return complete_names


complete_environments = _complete_names(names.list_environments)
complete_jobs = _complete_names(names.list_jobs)
complete_teams = _complete_names(names.list_teams)


def complete_jobs_and_files(context: click.Context, parameter: click.Parameter, word: str) -> Items:
    """Complete the name of a job, or a path."""
    return [*complete_jobs(context, parameter, word), *complete_files(context, parameter, word)]


def complete_rules(context: click.Context, parameter: click.Parameter, word: str) -> Items:
    """Complete the name of a rule, of a policy, of a category or of a preset."""
    policies = _complete_names(names.list_policies)(context, parameter, word)
    shipped = [CompletionItem(name) for name in (*PRESETS, *CATEGORIES, *list_known_rules(None))]
    return [*(item for item in shipped if item.value.startswith(word)), *policies]


def complete_jobs_and_rules(context: click.Context, parameter: click.Parameter, word: str) -> Items:
    """Complete the name of a job, of a rule or of a policy."""
    policies = _complete_names(names.list_policies)(context, parameter, word)
    rules = [CompletionItem(name) for name in list_known_rules(None)]
    return [*complete_jobs(context, parameter, word), *rules, *policies]
