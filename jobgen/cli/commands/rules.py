"""`jobgen rules`: list the rules and policies, and what the settings of the repository make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from jobgen.api.rules import ListedRule, rules
from jobgen.cli.complete import complete_rules
from jobgen.cli.result import ExitCode, Result
from jobgen.model.finding import Severity, pluralize
from jobgen.reports.escape import visible


@click.command("rules")
@click.argument("names", nargs=-1, metavar="[RULE|CATEGORY]...", shell_complete=complete_rules)
@click.option(
    "--severity",
    type=click.Choice([severity.value for severity in Severity]),
    default="info",
    help="List rules of this severity or worse.",
)
@click.option("--customized", is_flag=True, help="List only rules that the settings change.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def command(directory: Path, names: tuple[str, ...], *, severity: str, customized: bool, format_: str) -> Result:
    """List the rules, and their state here.

    The state is the severity that the settings of this repository give a rule, whether comments can suppress it, and
    whether `select` and `ignore` show its findings. `jobgen explain RULE` has more about a rule.
    """
    found = [each for each in rules(directory, names, severity=severity) if each.is_customized or not customized]
    if format_ == "json":
        return Result(ExitCode.OK, json.dumps([each.to_plain() for each in found], ensure_ascii=False, indent=2) + "\n")
    return Result(ExitCode.OK, "".join(f"{visible(line)}\n" for line in _format(found)), f"{_count(found)}\n")


def _format(found: Sequence[ListedRule]) -> Iterator[str]:
    width = max((len(each.name) for each in found), default=0)
    category = ""
    for each in found:
        if each.category != category:
            category = each.category
            yield from ("",) if each is not found[0] else ()
            yield category
        yield f"  {each.name:<{width}}  {each.state:<7}  {each.summary}{each.note and f' ({each.note})'}"


def _count(found: Sequence[ListedRule]) -> str:
    customized = sum(each.is_customized for each in found)
    return f"{pluralize(len(found), 'rule')}{f', {customized} customized' if customized else ''}"
