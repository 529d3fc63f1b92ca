"""Build what a run needs of the shipped files, ready to use: the tables that `jobgen/repo/ready.py` describes.

    python tools/build_ready.py

writes them to jobgen/data/ready/ of a checkout, where tests and benchmarks find them; nothing needs them. Hatch runs
the hook at the end when it builds a wheel.
"""

from __future__ import annotations

import json
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from click.testing import CliRunner
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOME = Path(__file__).parent.parent
sys.path.insert(0, str(HOME))

from jobgen.check import defects  # noqa: E402
from jobgen.check.cel import check_expression, describe_expression  # noqa: E402 -- the package of this folder
from jobgen.check.cel.together import (  # noqa: E402
    NAMES,
    describe_program,
    link,
    list_groups,
    list_variables,
)
from jobgen.check.defects import list_shipped  # noqa: E402
from jobgen.check.policy import ClusterFacts, PolicyEvaluator  # noqa: E402
from jobgen.cli.group import cli  # noqa: E402
from jobgen.cli.plain_arguments import ADD, NO_CACHE, SET, TAKE  # noqa: E402
from jobgen.cli.stored_help import WIDTH  # noqa: E402
from jobgen.pipeline.policies import load_policies  # noqa: E402
from jobgen.rendering import config  # noqa: E402
from jobgen.repo import layout, ready  # noqa: E402
from jobgen.yamlio.read import read  # noqa: E402

PLAIN_COMMANDS = ("lint", "render")
"""Commands whose function `run_command` is in a module without click, such as `jobgen/cli/run_lint.py`."""


def build() -> dict[str, str]:
    """Return the text of each file, by its name."""
    tables = {
        ready.DOCUMENTS: {key: _to_json(documents) for key, documents in _list_documents()},
        ready.EXPRESSIONS: dict(_list_expressions()),
        ready.ARGUMENTS: {name: _to_json(table) for name, table in describe_arguments().items()},
    }
    texts = {ready.name_file(name): _format(entries) for name, entries in tables.items()}
    return {**texts, ready.name_file(ready.HELP): _show("--version") + _show("--help")}


def _format(entries: dict[str, str]) -> str:
    """One line for each entry, in the order of the keys, so that the same entries are the same bytes."""
    return "".join(f"{key} {entries[key]}\n" for key in sorted(entries))


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list_documents() -> Iterator[tuple[str, list[Any]]]:
    """The documents of the kinds, of the policies that are always on, and of the known defects."""
    with TemporaryDirectory() as elsewhere:
        layers = layout.own_layers(Path(elsewhere))
        files = [*layout.read_kinds(layers), *layout.read_shipped_policies(layers)]
    files += layout.read_shipped_defects()
    for file in files:
        found = read(file.content, file.path)
        yield ready.make_digest([file.content]), [document.data for document in found.documents]


def _list_expressions() -> Iterator[tuple[str, str]]:
    """The compiled expressions of shipped policies and defects, by the digest of what they are made from."""
    with TemporaryDirectory() as elsewhere:
        project, policies = config.load_own(Path(elsewhere)), load_policies(layout.own_layers(Path(elsewhere))).policies
    kinds = [(str(kind.api_version), kind) for kind in project.kinds]
    plurals = {(api_version.partition("/")[0], kind.name): kind.plural for api_version, kind in kinds}
    evaluator = PolicyEvaluator(policies, ClusterFacts(plurals=plurals))
    objects = [{"apiVersion": api_version, "kind": kind.name, "metadata": {"name": "a"}} for api_version, kind in kinds]
    together = {each for obj in objects for each in evaluator.list_expressions(obj)}
    expressions = [expression for policy, _ in policies.policies for expression in policy.expressions]
    alone = {found for each in expressions if (found := each.share(is_ordered=each.returns != "bool"))}
    groups = {(group, True) for each in together for group in list_groups(each)} | {((each,), False) for each in alone}
    for group, is_verdict in groups:
        linked = link(group, is_verdict=is_verdict)
        yield ready.make_digest(describe_program(group, is_verdict=is_verdict)), b64encode(linked).decode()
    texts = {(each.inlined, each.returns) for each in expressions}
    variables = [value for policy, _ in policies.policies for value in policy.variables.values()]
    shared = [value.share(is_ordered=is_ordered) for value in variables for is_ordered in (False, True)]
    texts |= {(each.text, each.returns) for each in shared if each}
    # What an object is judged by together is also counted one by one.
    counted = {each for group, _ in groups for each in (*group, *list_variables(group))}
    texts |= {(each.text, each.returns) for each in counted}
    own = {(each.condition, "bool") for each in list_shipped()} | {(each.value, "string") for each in list_shipped()}
    listed = [*((NAMES, each) for each in sorted(texts)), *((defects.NAMES, each) for each in sorted(own) if each[0])]
    for names, (text, returns) in listed:
        checked = check_expression(text, names, returns)
        # One that the engine cannot run is rare, and none is shipped.
        if isinstance(checked, bytes) and b":interpreted:" not in checked[:80]:
            yield ready.make_digest(describe_expression(text, names, returns)), b64encode(checked).decode()


def describe_arguments() -> dict[str, Any]:
    """The options of plain kinds, before a command and of the commands that can run without click."""
    tables: dict[str, Any] = {"": _describe_command(cli, *PLAIN_COMMANDS)}
    for name in PLAIN_COMMANDS:
        _, command, _ = cli.resolve_command(click.Context(cli), [name])
        assert command is not None
        [argument] = (each for each in command.params if isinstance(each, click.Argument))
        # Anything but a list of texts would have to be checked.
        assert (argument.nargs, argument.type, argument.required) == (-1, click.STRING, False)
        tables[name] = {
            **_describe_command(command),
            "argument": argument.name,
            "module": f"jobgen.cli.run_{name}",
        }
    return tables


def _describe_command(command: click.Command, *words: str) -> dict[str, Any]:
    """What a command is called with, and how its options change it; `words` are what follows the options."""

    def parse(*options: str) -> dict[str, Any]:
        return command.make_context(command.name, [*options, *words]).params

    found: dict[str, tuple[str, str, Any]] = {}
    for option in command.params:
        name = option.name or ""
        # That of a command does the same as that of jobgen.
        is_checked = option.callback is not None and name != NO_CACHE
        if not isinstance(option, click.Option) or is_checked or option.prompt or option.envvar or option.nargs != 1:
            continue
        if option.is_flag:
            given = {spelling: parse(spelling).get(name, True) for spelling in (*option.opts, *option.secondary_opts)}
            found |= {spelling: (name, SET, value) for spelling, value in given.items()}
        elif option.type is click.STRING or isinstance(option.type, click.Choice):
            choices = list(option.type.choices) if isinstance(option.type, click.Choice) else None
            found |= dict.fromkeys(option.opts, (name, ADD if option.multiple else TAKE, choices))
    return {"options": found, "values": {NO_CACHE: False, **parse()}}


def _show(option: str) -> str:
    """What click prints for an option."""
    return CliRunner().invoke(cli, [option], prog_name="jobgen", terminal_width=WIDTH).output


def write(folder: Path) -> None:
    """Write the tables, and remove those of other code."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in build().items():
        (folder / name).write_text(text, "utf-8")


class ReadyHook(BuildHookInterface[Any]):
    """Adds the tables to a wheel. An editable installation is the checkout, and does without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the tables in a temporary folder, which is removed when the wheel is done."""
        if version != "editable":
            self._folder = TemporaryDirectory()
            write(Path(self._folder.name, "ready"))
            build_data["force_include"][f"{self._folder.name}/ready"] = "jobgen/data/ready"


if __name__ == "__main__":
    write(Path(ready.FOLDER))
