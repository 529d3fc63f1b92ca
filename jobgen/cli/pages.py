"""The pages of the documentation, for errors and for the names of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from jobgen.cli.result import ExitCode, Result
from jobgen.model.features import list_command_modules
from jobgen.reports import SITE, name_rule_page

ISSUES = "https://github.com/jobgen/jobgen/issues"
# Their messages go to other programs.
_WITHOUT_PAGES = frozenset(("cmp", "fn", "lsp", "mcp"))
_COMMANDS = {
    "capture": "live.md",
    "diff": "diff.md",
    "drift": "live.md",
    "import": "import.md",
    "lint": "lint.md",
    "migrate": "migrate.md",
    "policy": "policies.md",
    "queue": "kueue.md",
    "report": "report.md",
    "teams": "teams.md",
    "test": "tests.md",
    "upgrade": "upgrade.md",
}
"""The page about a command; others have a section of commands.md."""
_MESSAGES = (
    (r"internal error", ISSUES),
    (r"the output cannot be written|current folder does not exist", ""),
    (r"no jobs repository|there is no repository", "tutorial.md"),
    (r"requires `.*install such a version", "compatibility.md#pin-a-version"),
    (r"in jobgen\.yaml", "lint.md#settings"),
    (r"baseline", "lint.md#only-new-findings"),
    (r"merge-reports|--shard", "ci.md#large-repositories"),
    (r"there is no environment", "overlays.md"),
    (r"there is no (?:rule|policy)", "rules.md"),
    (r"there is no kind", "kinds.md"),
    (r"revision|shallow clone|git is not", "diff.md"),
    (r"kubeconform|jsonschema", "lint.md#a-second-opinion"),
    (r"policies have errors", "policies.md"),
)
"""The page about what a message says; an empty one if no page helps."""


def add_page(arguments: Sequence[str], result: Result) -> Result:
    """Return a result whose error names the page that helps."""
    message = result.err.removesuffix("\n").rpartition("\n")[2]
    if result.code in (ExitCode.OK, ExitCode.ERRORS) or not message.startswith("jobgen: "):
        return result
    command, words = "", iter(arguments)
    for word in words:
        if word in ("-C", "--directory"):
            next(words, None)
        elif not word.startswith("-"):
            command = word if word in list_command_modules() else ""
            break
    page = find_page(command, message, result.code)
    return result._replace(err=f"{result.err}see: {page}\n") if page else result


def find_page(command: str, message: str, code: int = ExitCode.USAGE) -> str:
    """Return the address of the page about an error; empty if there is none, as for a full disk."""
    if command in _WITHOUT_PAGES:
        return ""
    usual = _COMMANDS.get(command, f"commands.md#jobgen-{command}" if command else "commands.md")
    # An unknown option or value names others, which have nothing to do with the error.
    is_spelling = re.search(r"there is no option|is not a value of `", message) and "removed" not in message
    known = (page for pattern, page in _MESSAGES if not is_spelling and re.search(pattern, message))
    page = next(known, "" if code == ExitCode.INTERNAL_ERROR else usual)
    return page if page in ("", ISSUES) else f"{SITE}/{page}"


def link_rules(environ: Mapping[str, str], *, is_terminal: bool) -> Callable[[str], str] | None:
    """Return a function that finds the page of a rule, empty for policies of users; None without links.

    FORCE_HYPERLINK decides whether there are links, as for other programs.
    """
    forced, name, vte = (environ.get(key, "") for key in ("FORCE_HYPERLINK", "TERM", "VTE_VERSION"))
    # These show the address in the text, or nothing at all.
    is_unable = name in ("", "dumb", "linux") or name.startswith("screen") or (vte.isdecimal() and int(vte) < 5000)
    has_links = forced != "0" if forced else is_terminal and not is_unable and not environ.get("CI")
    return name_rule_page if has_links else None
