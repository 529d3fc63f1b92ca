"""Write docs/fields.md from the schemas of the formats; with --check, only test whether it is current."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from build_jobs import to_flow

from jobgen.rendering.config import complete_schemas, load_frameworks
from jobgen.repo.layout import own_layers

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/fields.md"
PRICES = ROOT / "schemas/jobgen.dev/prices_v1.json"
FORMATS = {
    "trainingjob": ("TrainingJob", "`jobs/**/*.yaml`", "jobs.md"),
    "overlay": ("Overlay", "`overlays/<env>/*.yaml`", "overlays.md"),
    "settings": ("Settings", "`jobgen.yaml`", "lint.md#settings"),
    "defects": ("Defects", "`defects/*.yaml`", "defects.md"),
    "team": ("Team", "`teams/<team>.yaml`", "teams.md"),
    "jobtests": ("JobTests", "`tests/*.yaml`", "tests.md"),
    "prices": ("Prices", "the file of `--prices`", "prices.md"),
    "kind": ("Kind", "`schemas/<group>/<kind>_<version>.yaml`", "write_kind.md"),
}
# What several fields have in common has a section of its own, after that of its format.
SHARED = {
    "trainingjob_v1.json#/$defs/fields": "Fields of a job",
    "trainingjob_v1.json#/$defs/role": "Fields of a role",
    "trainingjob_v1.json#/$defs/containers": "Containers",
    "trainingjob_v1.json#/$defs/secret": "Secrets",
    "trainingjob_v1.json#/$defs/config": "Configs",
    "overlay_v1.json#/properties/spec/properties/cluster": "Cluster",
    "overlay_v1.json#/$defs/match": "Match",
    "overlay_v1.json#/$defs/exclude": "Exclude",
    "team_v1.json#/$defs/team": "Fields of a team",
    "settings_v1.json#/$defs/setting": "Severities",
}
INTRO = """\
<!-- Written by docs/build_fields.py: run `make docs`. -->

# Fields

Every field of every file that jobgen reads, from the schemas that it checks them with. `[]` is each item of a list, `*`
is any name, and a field with ! is required. `jobgen schema editor` writes the same schemas for editors. The pages of
the formats say how fields work together.

"""
_TYPES = {"object": "map", "array": "list", "string": "text", "integer": "whole number", "boolean": "true or false"}
_HEAD = "| field | type | meaning | example |\n|---|---|---|---|\n"


def main() -> int:
    """Write the page, or compare it."""
    text = build_page()
    if "--check" in sys.argv:
        is_current = PAGE.is_file() and PAGE.read_text("utf-8") == text
        sys.stderr.write("" if is_current else "docs/fields.md is out of date: run `make docs`\n")
        return 0 if is_current else 1
    PAGE.write_text(text, "utf-8")
    return 0


def build_page() -> str:
    """Return the whole page."""
    schemas = complete_schemas(load_frameworks(own_layers(ROOT)))
    reader = Reader({**schemas, "prices_v1.json": json.loads(PRICES.read_text("utf-8"))})
    return INTRO + "\n".join(part for name in FORMATS for part in _list_sections(name, reader))


def _list_sections(name: str, reader: Reader) -> Iterator[str]:
    title, path, page = FORMATS[name]
    file = f"{name}_v1.json"
    yield f"## {title}\n\n{path}; see [{page.partition('#')[0]}]({page}).\n\n{_HEAD}{reader.format_rows(file + '#')}"
    for reference, heading in SHARED.items():
        if reference.startswith(file):
            yield f"### {heading}\n\n{_HEAD}{reader.format_rows(reference)}"


class Reader:
    """Lists the fields of schemas, which refer to each other."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def format_rows(self, reference: str) -> str:
        """Return a row for each field of a schema, and of those below it; equal rows once."""
        file = reference.partition("#")[0]
        return "".join(dict.fromkeys(self._list_fields(self._find(reference), file, "", frozenset({reference}))))

    def _complete(self, reference: str, file: str) -> str:
        return file + reference if reference.startswith("#") else reference

    def _find(self, reference: str) -> Any:
        file, _, pointer = reference.partition("#")
        found = self._schemas[file]
        for part in filter(None, pointer.split("/")):
            found = found[part]
        return found

    def _list_fields(self, schema: dict[str, Any], file: str, path: str, seen: frozenset[str]) -> Iterator[str]:
        if reference := schema.get("$ref"):
            reference = self._complete(reference, file)
            if reference not in SHARED and reference not in seen:
                found = self._find(reference)
                yield from self._list_fields(found, reference.partition("#")[0], path, seen | {reference})
            return
        for name, field in schema.get("properties", {}).items():
            inner = f"{path}.{name}" if path else name
            is_former = isinstance(field, dict) and field.get("description", "").startswith("The former name of")
            if isinstance(field, dict) and name != "$patch" and not is_former:
                mark = " !" if name in schema.get("required", ()) else ""
                yield self._format_row(f"`{inner}`{mark}", field, file)
                yield from self._list_fields(field, file, inner, seen)
        for keyword, suffix in (("additionalProperties", ".*"), ("items", "[]")):
            if path and isinstance(schema.get(keyword), dict):
                yield from self._list_fields(schema[keyword], file, path + suffix, seen)
        for keyword in ("anyOf", "oneOf", "allOf"):
            for choice in schema.get(keyword, ()):
                yield from self._list_fields(choice, file, path, seen)

    def _format_row(self, name: str, field: dict[str, Any], file: str) -> str:
        if "$ref" in field:
            field = {**self._find(self._complete(field["$ref"], file)), **field}
        examples = field.get("examples", ())
        cells = (
            name,
            " or ".join(dict.fromkeys(self._list_types(field, file))) or "any",
            field.get("description", "") + (f" Default: `{to_flow(field['default'])}`." if "default" in field else ""),
            f"`{to_flow(examples[0])}`" if examples else "",
        )
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    def _list_types(self, schema: dict[str, Any], file: str) -> Iterator[str]:
        """Yield the types of a field: plain ones, its values, and links to what it has in common with others."""
        if reference := schema.get("$ref"):
            reference = self._complete(reference, file)
            if heading := SHARED.get(reference):
                yield f"[{heading.lower()}](#{heading.lower().replace(' ', '-')})"
                return
            yield from self._list_types(self._find(reference), reference.partition("#")[0])
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            yield ", ".join(f"`{to_flow(value)}`" for value in values if value is not None)
        else:
            names = schema.get("type", [])
            for name in [names] if isinstance(names, str) else names:
                if name == "array" and isinstance(schema.get("items"), dict):
                    items = list(dict.fromkeys(self._list_types(schema["items"], file)))
                    yield f"list of {items[0]}" if len(items) == 1 and items != ["map"] else "list"
                elif name == "object" and isinstance(schema.get("additionalProperties"), dict):
                    values = list(dict.fromkeys(self._list_types(schema["additionalProperties"], file)))
                    yield f"map to {values[0]}" if len(values) == 1 and values != ["map"] else "map"
                elif name != "null":
                    yield _TYPES.get(name, name)
        for keyword in ("anyOf", "oneOf"):
            for choice in schema.get(keyword, ()):
                yield from self._list_types(choice, file)


if __name__ == "__main__":
    sys.exit(main())
