"""Write the tables of docs/jobs.md from the kind descriptions; with --check, only test whether they are current."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobgen.rendering.config import load_own
from jobgen.spec.frameworks import find_default
from jobgen.spec.kinds import Kind

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/jobs.md"
START = "<!-- Written by docs/build_jobs.py: run `make docs`. -->\n"
END = "<!-- End of the part that docs/build_jobs.py writes. -->\n"
_TYPES = {"object": "mapping", "array": "list", "string": "text", "integer": "whole number", "boolean": "true or false"}
_FRAMEWORKS = frozenset(name for kind in load_own(ROOT).kinds for name in kind.frameworks)
_SPECIAL = frozenset(",:{}[]#&*!|>'\"%@`")


def main() -> int:
    """Write the tables into the page, or compare them."""
    page = PAGE.read_text("utf-8")
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    text = f"{before}{start}\n{build_tables()}\n{end}{after}"
    if "--check" in sys.argv:
        sys.stderr.write("" if page == text else "docs/jobs.md is out of date: run `make docs`\n")
        return 0 if page == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


def build_tables() -> str:
    """Return a table for each framework and each platform that has fields."""
    kinds = sorted(
        (kind for kind in load_own(ROOT).kinds if kind.frameworks), key=lambda kind: (kind.platform, kind.name)
    )
    frameworks = sorted({name for kind in kinds for name in kind.frameworks})
    platforms = sorted({kind.platform for kind in kinds} - set(frameworks))
    return "\n".join(filter(None, (_format_block(name, kinds) for name in (*frameworks, *platforms))))


def _format_block(name: str, kinds: list[Kind]) -> str:
    prefix = f"{name}."
    paths = sorted({path for kind in kinds for path in kind.fields if path.startswith(prefix)})
    rows = "".join(_format_row(path, [kind for kind in kinds if path in kind.fields]) for path in paths)
    head = f"### {name}\n\n| field | type | meaning | example | default | platforms |\n|---|---|---|---|---|---|\n"
    return head + rows if rows else ""


def _format_row(path: str, kinds: list[Kind]) -> str:
    first = kinds[0].fields[path]
    types = list(dict.fromkeys(_TYPES.get(name, name) for kind in kinds for name in kind.fields[path].types))
    cells = (
        f"`{path}`",
        " or ".join(types) or "any",
        first.description,
        f"`{to_flow(first.example)}`",
        "; ".join(_list_defaults(path, kinds)),
        ", ".join(dict.fromkeys(_format_platform(kind, path) for kind in kinds)),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _list_defaults(path: str, kinds: list[Kind]) -> Iterator[str]:
    """The default values, with their platforms if not all have the same one."""
    platforms: dict[str, list[str]] = {}
    for kind in kinds:
        default = find_default(kind, path)
        if default is not None:
            platforms.setdefault(to_flow(default), []).append(f"`{kind.platform}`")
    for default, names in platforms.items():
        yield f"`{default}`" + ("" if len(names) == len(kinds) else f" on {', '.join(names)}")


def _format_platform(kind: Kind, path: str) -> str:
    versions, block = kind.fields[path].versions, path.partition(".")[0]
    shown = f"`{kind.platform}`" + (f" from {versions.since}" if versions.since else "")
    # A block with the name of a framework can be one of jobs with another framework.
    is_of_other = block in _FRAMEWORKS and block not in kind.frameworks
    return f"{shown} with `framework: {next(iter(kind.frameworks))}`" if is_of_other else shown


def to_flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {to_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_flow, value)) + "]"
    if isinstance(value, str) and value and not _SPECIAL.intersection(value) and not value.isdigit():
        return value
    return json.dumps(value)


if __name__ == "__main__":
    sys.exit(main())
