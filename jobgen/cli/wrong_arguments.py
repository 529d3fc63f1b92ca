"""What is wrong with the arguments of a command, and what to write instead, for what click refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import click

from jobgen.cli.commands import SHIPPED
from jobgen.model.features import NO_FEATURE, find_missing_feature
from jobgen.model.suggest import ask_for, did_you_mean, list_alternatives, suggest_or

_NO_COMMAND = re.compile(r"No such command '(.*?)'\.", re.DOTALL)
_NO_NUMBER = re.compile(r"'?([^']{1,80}?)'? is not (?:a valid integer range|in the range)")
_NO_CHOICE = re.compile(r"'(.*)' is not one of ", re.DOTALL)
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)
_MATRIX = "it was removed: let each job of a CI matrix lint another folder, or use `--since` and the cache"
_LINT, _RENDER, _FIX = "use `jobgen lint`", "use `jobgen render`", "use `jobgen lint --fix`"
_LIST = "use `jobgen report` for all jobs, `jobgen render` for their objects or `jobgen rules` for the rules"
_INSTEAD = {
    "apply": "use `jobgen render -o` and let Argo CD or Flux apply the tree; see `jobgen gitops`",
    "build": _RENDER,
    "check": _LINT,
    "convert": "use `jobgen import` for manifests or `jobgen migrate` for jobs",
    **dict.fromkeys(("env", "envs", "environments", "status"), "use `jobgen doctor`, which lists what is set up"),
    "create": "use `jobgen new` for a job or `jobgen init` for a repository",
    "fix": _FIX,
    "fmt": _FIX,
    "format": _FIX,
    "help": "use `jobgen --help`",
    "jobs": _LIST,
    "list": _LIST,
    "ls": _LIST,
    "show": "use `jobgen render` for objects or `jobgen explain` for the source of a value",
    "merge-reports": _MATRIX,
    "plan": "use `jobgen diff`",
    "template": _RENDER,
    "validate": _LINT,
    "verify": _LINT,
    "version": "use `jobgen --version`",
    "--shard": _MATRIX,
    "-V": "use `--version`",
    "--json": "use `--format json`",
    "--dry-run": "use `jobgen lint --diff` to see fixes; `import`, `migrate` and `render` write only with an option",
    "--no-color": "use `--color never`",
    **dict.fromkeys(("-o", "--output", "--output-format"), "use `--format` for another format, and `>` for a file"),
    **dict.fromkeys(("--enable", "--include", "--only", "--rule", "--rules"), "use `--select`"),
    **dict.fromkeys(("--strict", "--werror", "--warnings-as-errors"), "use `--fail-on warning`"),
    **dict.fromkeys(
        ("--disable", "--exclude", "--skip"), "use `--ignore` for rules, and `exclude` in jobgen.yaml for files"
    ),
    **dict.fromkeys(("--nodes", "--replicas", "--workers"), "write `replicas` in the file of the job"),
    **{f"--{name}": f"write `{name}` in the file of the job" for name in ("command", "image", "namespace", "queue")},
    **dict.fromkeys(("--cpu", "--cpus", "--memory"), "write `resources` in the file of the job"),
}
"""What to use for commands and options that users look for under another name, or that were removed."""


def explain_arguments(error: click.UsageError) -> str:
    """Return what is wrong with the arguments, and what to do."""
    if isinstance(error, click.BadOptionUsage):
        return f"`{error.option_name}` has no value; write one behind it"
    for kind, explain in _EXPLANATIONS.items():
        if isinstance(error, kind) and error.ctx is not None:
            return explain(error, error.ctx)
    message = error.format_message()
    return f"{message[:1].lower()}{message[1:].rstrip('.')}"


def _explain_option(error: Any, context: click.Context) -> str:
    name = error.option_name
    if name in _INSTEAD:
        return f"there is no option `{name}`; {_INSTEAD[name]}"
    known = [spelling for each in context.command.get_params(context) for spelling in each.opts if spelling[:2] == "--"]
    listed = f"`{context.command_path} --help` lists the options"
    advice = listed if context.parent else f"{listed}; those of a command stand behind its name"
    return f"there is no option `{name}`{suggest_or(name, known, advice)}"


def _explain_missing_parameter(error: Any, context: click.Context) -> str:
    name = error.param.make_metavar(context)
    name = name if isinstance(error.param, click.Argument) else f"{error.param.opts[0]} {name}"
    choices = list(error.param.type.choices) if isinstance(error.param.type, click.Choice) else []
    return f"`{name}` is missing; write `{context.command_path} {choices[0] if choices else name}`"


def _explain_value(error: Any, context: click.Context) -> str:
    name = error.param.opts[-1] if isinstance(error.param, click.Option) else error.param.make_metavar(context)
    found = _NO_CHOICE.match(error.message)
    range_ = error.param.type
    if isinstance(range_, click.IntRange) and (text := _NO_NUMBER.match(error.message)):
        bounds = f" from {range_.min} to {range_.max}" if None not in (range_.min, range_.max) else ""
        return f"`{text[1]}` is not a value of `{name}`; write a whole number{bounds}"
    if found is None or not isinstance(error.param.type, click.Choice):
        return f"`{name}`: {error.message.rstrip('.')}; `{context.command_path} --help` describes it"
    known = [str(each) for each in error.param.type.choices]
    # Imported late: most names are right.
    from jobgen.schema.foreign_words import find_value

    # Frameworks and platforms have other names in other tools.
    meant = find_value(name.lstrip("-"), found[1])
    hint = ask_for(meant if meant in known else "") or did_you_mean(found[1], known)
    hint = hint or f"; write {list_alternatives(f'`{each}`' for each in known)}"
    return f"`{found[1]}` is not a value of `{name}`{hint}"


def _explain_usage(error: click.UsageError, context: click.Context) -> str:
    """Return what is wrong with a command, or the message of a command that checks its own arguments."""
    found = _NO_COMMAND.match(error.message)
    if found is not None and isinstance(context.command, click.Group):
        return _explain_command(found[1], context, context.command)
    if error.message == "Missing command.":
        return f"a command is missing; `{context.command_path} --help` lists the commands"
    found = _EXTRA.match(error.message)
    if found is not None:
        return f"`{context.command_path}` takes no further argument `{found[1]}`; remove it"
    return f"{error.message[:1].lower()}{error.message[1:].rstrip('.')}"


def _explain_command(name: str, context: click.Context, group: click.Group) -> str:
    is_first = context.parent is None
    features = [feature for feature, commands in SHIPPED.items() if name in commands and is_first]
    if features:
        return f"there is no command `{name}`: {NO_FEATURE.format(find_missing_feature(features[0]))}"
    known = group.list_commands(context)
    advice = f"`{context.command_path} --help` lists the commands"
    if is_first and name in _INSTEAD:
        return f"there is no command `{name}`; {_INSTEAD[name]}"
    return f"there is no command `{name}`{suggest_or(name, known, advice)}"


_EXPLANATIONS: Mapping[type[click.UsageError], Callable[[Any, click.Context], str]] = {
    click.NoSuchOption: _explain_option,
    click.MissingParameter: _explain_missing_parameter,
    click.BadParameter: _explain_value,
    click.UsageError: _explain_usage,
}
