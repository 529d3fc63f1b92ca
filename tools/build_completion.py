"""Build the help in jobgen/data/help/, the table of commands that shell completion reads, and the list of features.

    python tools/build_completion.py

Run it after a change of a command, an option or a rule; `tests/test_shell_completion.py` and
`tests/test_help_texts.py` say when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from jobgen.check.rule_docs import all_docs
from jobgen.cli.app import cli
from jobgen.cli.help_texts import FOLDER, WIDTH, name_file
from jobgen.model.features import SHIPPED, all_features, to_command
from jobgen.render import config

TABLE = Path(__file__).parent.parent / "jobgen/cli/completion/commands.py"
_TAKES: dict[str, list[str]] = {
    "BASE[..HEAD]": ["revision"],
    "CRD": ["file"],
    "DIR": ["folder"],
    "ENV": ["environment"],
    "FIELD": ["field"],
    "FILE": ["file"],
    "FOLDER": ["folder"],
    "JOB": ["job"],
    "JOB|FILE": ["job", "file"],
    "JOB|RULE": ["job", "rule"],
    "MANIFEST": ["file"],
    "OLD NEW": ["folder"],
    "PATH": ["file"],
    "REV": ["revision"],
    "TEAM": ["team"],
    "TEST|FILE": ["file"],
}
"""The sorts of names that a parameter takes, by its name in the usage."""
_MODULE = '''"""The table of commands, for completion; `tools/build_completion.py` writes it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TABLE: dict[str, Any] = '''
_FREE = {"DATE", "DURATION", "FORMAT=FILE", "I/N", "NAME", "NAME=FOLDER", "ROOT", "URL"}
"""Parameters that cannot be completed."""


def build() -> str:
    """The text of the table."""
    table = {**_describe(cli, None, "jobgen"), "rules": sorted(all_docs(None))}
    # Texts and lists are written as in JSON; `many` is always true.
    return _MODULE + json.dumps(table, indent=1, ensure_ascii=False).replace('"many": true', '"many": True') + "\n"


def _describe(command: click.Command, parent: click.Context | None, name: str) -> dict[str, Any]:
    context = click.Context(command, parent, name, **command.context_settings)
    found: dict[str, Any] = {"help": command.get_short_help_str(100), "options": {}, "arguments": []}
    for parameter in command.get_params(context):
        entry = _describe_values(parameter)
        if isinstance(parameter, click.Option) and not parameter.hidden:
            entry |= {"help": _shorten(parameter.help or "")}
            entry |= {} if parameter.is_flag or parameter.count else {"count": parameter.nargs}
            found["options"] |= dict.fromkeys((*parameter.opts, *parameter.secondary_opts), entry)
        elif isinstance(parameter, click.Argument):
            found["arguments"].append(entry | ({"many": True} if parameter.nargs == -1 else {}))
    if isinstance(command, click.Group):
        each = {name: command.resolve_command(context, [name])[1] for name in command.list_commands(context)}
        found["commands"] = {
            name: _describe(inner, context, name) for name, inner in each.items() if inner and not inner.hidden
        }
    return found


def _describe_values(parameter: click.Parameter) -> dict[str, Any]:
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        return {}
    if isinstance(parameter.type, click.Choice):
        return {"words": list(parameter.type.choices)}
    name = _name_values(parameter)
    if name in ("KIND", "KIND|PLATFORM"):
        kinds = config.load(TABLE.parent).kinds
        if name == "KIND":
            return {"words": sorted({kind.name for kind in kinds})}
        # Nothing can be converted to a runtime, which has no framework.
        jobs = [kind for kind in kinds if kind.frameworks]
        return {"words": sorted({kind.name for kind in jobs} | {kind.platform for kind in jobs})}
    if name.startswith("running="):
        return {"words": ["running=all", "running=none"]}
    if name not in _TAKES and name not in _FREE:
        raise SystemExit(f"add `{name}` of {parameter.opts} to the tables of tools/build_completion.py")
    return {"takes": _TAKES[name]} if name in _TAKES else {}


def _name_values(parameter: click.Parameter) -> str:
    """`JOB` for `[JOB]...`; a parameter without such a name has its own, an environment that of `--env`."""
    name = parameter.metavar or ("ENV" if "--env" in parameter.opts else parameter.name or "").upper()
    name = name.replace("...", "")
    return name[1:-1] if name.startswith("[") else name


def _shorten(text: str) -> str:
    """The first sentence, for a list of options."""
    return text.partition("; ")[0].partition(". ")[0].rstrip(".")


def build_help() -> dict[str, str]:
    """The text of each file with the help of a command, by its name."""
    return {name_file(names): text for names, text in _list_help(cli, None, ())}


def build_features() -> str:
    """The list of features, each with its commands."""
    lines = (" ".join((name, *map(to_command, feature.commands))) for name, feature in all_features().items())
    return "".join(f"{line}\n" for line in lines)


def _list_help(
    command: click.Command, parent: click.Context | None, names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    settings = {**command.context_settings, "terminal_width": WIDTH - 2}
    with click.Context(command, parent, names[-1] if names else "jobgen", **settings) as context:
        yield names, f"{command.get_help(context)}\n"
        for name in command.list_commands(context) if isinstance(command, click.Group) else ():
            inner = command.resolve_command(context, [name])[1]
            if inner is not None and not inner.hidden:
                yield from _list_help(inner, context, (*names, name))


def main() -> None:
    """Write all files, and remove those of commands that are gone."""
    TABLE.write_text(build(), "utf-8")
    Path(SHIPPED).write_text(build_features(), "utf-8")
    texts = build_help()
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
