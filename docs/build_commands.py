"""Write the usage of each command into docs/commands.md; with --check, only test whether it is current."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from jobgen.cli.group import cli

PAGE = Path(__file__).parent / "commands.md"
END = "<!-- end -->\n"
_DEFAULT = re.compile(r"\[default: (.*?)\]")
_CODE = re.compile(r"(`[^`]*`)")
_CHOICES = re.compile(r"\[([\w-]+(?:\|[\w-]+)+)\]")


def main() -> int:
    """Write the blocks into the page, or compare them."""
    page = PAGE.read_text("utf-8")
    text, missing = fill_page(page)
    for name in missing:
        sys.stderr.write(f"docs/commands.md has no section `## jobgen {name}`\n")
    if "--check" in sys.argv:
        sys.stderr.write("" if page == text else "docs/commands.md is out of date: run `make docs`\n")
        return 0 if page == text and not missing else 1
    PAGE.write_text(text, "utf-8")
    return 1 if missing else 0


def fill_page(page: str) -> tuple[str, list[str]]:
    """Return the page with a current block below the heading of each command, and commands without a heading."""
    missing = []
    for name, command in _list_commands():
        heading = f"\n## jobgen {name}\n\n"
        if heading not in page:
            missing.append(name)
            continue
        start = f"<!-- `jobgen {name}`: written by docs/build_commands.py, run `make docs` -->\n"
        before, _, after = page.partition(heading)
        if after.startswith(start):
            after = after.partition(END)[2].lstrip("\n")
        page = f"{before}{heading}{start}\n{_format_block(command, f'jobgen {name}')}\n{END}\n{after}"
    return page, missing


def _list_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli, info_name="jobgen")
    for name in cli.list_commands(context):
        _, command, _ = cli.resolve_command(context, [name])
        assert command is not None
        yield name, command


def _format_block(command: click.Command, name: str) -> str:
    """Return the description and the options of a command, and those of its subcommands."""
    context = click.Context(command, info_name=name)
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    rows = [row for parameter in command.get_params(context) for row in _format_option(parameter, context)]
    table = "\n| option | meaning |\n|---|---|\n" + "".join(rows) if rows else ""
    parts = [f"```text\n{usage}\n```\n\n{_format_help(command)}\n{table}"]
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            parts.append(_format_block(inner, f"{name} {each}"))
    return "\n".join(parts)


def _format_help(command: click.Command) -> str:
    """Return the help as paragraphs; those that click must not wrap are lines of code."""
    paragraphs = []
    for paragraph in (command.help or "").split("\n\n"):
        text = paragraph.strip("\n")
        is_code = text.startswith("\b")
        paragraphs.append(
            f"```text\n{text.lstrip(chr(8)).strip(chr(10))}\n```" if is_code else _escape(" ".join(text.split()))
        )
    return "\n\n".join(paragraphs)


def _escape(text: str) -> str:
    """Escape HTML, except in code spans, where Markdown shows each character as it is."""
    return "".join(part if part[:1] == "`" else html.escape(part, quote=False) for part in _CODE.split(text))


def _format_option(parameter: click.Parameter, context: click.Context) -> Iterator[str]:
    # Options that `--help` leaves out are described here.
    if isinstance(parameter, click.Option) and parameter.help:
        parameter.hidden = False
    record = parameter.get_help_record(context)
    if not isinstance(parameter, click.Option) or record is None or "--help" in parameter.opts:
        return
    names, text = record
    choices = _CHOICES.search(names)
    listed = choices[1].split("|") if choices else ()
    if not listed and isinstance(parameter.type, click.Choice):
        # The help of a command is short; this page has room for all of them.
        listed = parameter.type.choices
    words = [_DEFAULT.sub(r"Default: `\1`.", text).replace("[required]", "Required.").replace("  ", " ")]
    if listed:
        words.append(f"One of {', '.join(f'`{choice}`' for choice in listed)}.")
    cells = (f"`{_CHOICES.sub('', names).strip()}`", _escape(" ".join(filter(None, words))))
    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.exit(main())
