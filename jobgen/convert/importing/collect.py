"""Files to the manifests in them that can be imported; and for everything else why not, with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobgen.convert.importing.comments import remarks_in
from jobgen.convert.importing.import_job import ImportedSpec, add_comments, import_manifest, keep_manifest
from jobgen.convert.importing.patch import find_duplicate_items
from jobgen.convert.importing.server_fields import template_text
from jobgen.model.data import Data, Location, TracedList, location_of, value_of
from jobgen.model.finding import Finding
from jobgen.model.path import format_dotted
from jobgen.pipeline import config
from jobgen.render.build import is_spec, manifest_errors, split_list
from jobgen.repo import layout
from jobgen.spec.kinds import Kind
from jobgen.yamlio.read import YamlDocument, read
from jobgen.yamlio.write import to_inline_yaml


class SkippedManifest(NamedTuple):
    """What cannot be imported: where it stands, and why."""

    location: Location
    reason: str
    details: tuple[str, ...] = ()


class ImportedManifest(NamedTuple):
    """A spec and where its manifest stands."""

    location: Location
    spec: ImportedSpec
    notes: tuple[tuple[Location, str], ...] = ()


def collect_manifests(
    entries: Iterable[layout.FileEntry], kinds: Sequence[Kind]
) -> Iterator[ImportedManifest | SkippedManifest]:
    """Everything in some files, imported or refused, in its order."""
    for entry in entries:
        file = layout.read_file(entry)
        findings: list[Finding] = []
        documents = config.read_documents(file, findings).documents
        yield from (SkippedManifest(finding.location, finding.message) for finding in findings)
        for position, document in enumerate(documents):
            yield from _objects(file, position, document, kinds)


def _objects(
    file: layout.File, position: int, document: YamlDocument, kinds: Sequence[Kind]
) -> Iterator[ImportedManifest | SkippedManifest]:
    marked = read(file.content, file.path, marked=True).documents[position].data
    lines = file.content.decode("utf-8").replace("\r\n", "\n").split("\n")
    whole = _bounds(lines, document.location.line)
    items, locations = split_list(document.data), split_list(marked)
    single = len(items) == 1 and items[0] is document.data
    places = marked.get("items") if not single else None
    for number, (item, traced) in enumerate(zip(items, locations, strict=True)):
        location, bounds = document.location, whole
        if isinstance(places, TracedList) and number < len(places.item_locations):
            location = places.item_locations[number]
            following = (
                places.item_locations[number + 1].line - 1 if number + 1 < len(places.item_locations) else whole[1]
            )
            bounds = (location.line, following)
        yield _one(item, traced, location, kinds, lines, bounds)


def _bounds(lines: list[str], begin: int) -> tuple[int, int]:
    """The first and the last line of the document that begins at a line, with the comments before it."""
    first = next((number for number in range(begin, 0, -1) if lines[number - 1].startswith("---")), 0) + 1
    after = (number for number in range(begin + 1, len(lines) + 1) if lines[number - 1].startswith("---"))
    return first, next(after, len(lines) + 1) - 1


def _one(
    item: Data, marked: Data, location: Location, kinds: Sequence[Kind], lines: list[str], bounds: tuple[int, int]
) -> ImportedManifest | SkippedManifest:
    if isinstance(item, dict) and is_spec(item):
        return SkippedManifest(location, f"`{item.get('kind')}` is jobgen's own already")
    kind = _kind(item, kinds)
    if not isinstance(kind, Kind):
        return SkippedManifest(location_of(marked) or location, kind)
    faults = manifest_errors(marked)
    if faults:
        return SkippedManifest(location_of(faults[0].node) or location, faults[0].message)
    if not any(map(value_of, _named(marked)[:2])):
        return SkippedManifest(location, "the object has no name")
    if not kind.frameworks:
        return ImportedManifest(
            location,
            keep_manifest(item, kind),
            ((location, f"`{kind.name}` is no job; it stays the manifest that it is"),),
        )
    notes = tuple(
        (location_of(node) or location, _TEMPLATE.format(value_of(node))) for node in template_text(_named(marked))
    )
    spec = import_manifest(item, kind, kinds)
    if not isinstance(spec, ImportedSpec):
        for node, name in find_duplicate_items(marked):
            said = f"`{value_of(node)}` stands twice in `{name}`, which no spec can say; delete one of them"
            return SkippedManifest(location_of(node) or location, said)
        details = [
            f"`{format_dotted(path)}`: {to_inline_yaml(wanted)} would become {to_inline_yaml(made)}"
            for path, wanted, made in spec.differences
        ]
        return SkippedManifest(location, _unproven(spec.problems), tuple(details))
    return ImportedManifest(location, add_comments(spec, marked, remarks_in(lines, marked, *bounds), kinds), notes)


_TEMPLATE = "`{}` is text for a template, which jobgen hands on as it is"


def _kind(item: Data, kinds: Sequence[Kind]) -> Kind | str:
    """The kind of an object, or why nobody knows it."""
    if not isinstance(item, dict) or not isinstance(item.get("kind"), str):
        return "there is no `kind`, so nobody knows what it is"
    api_version, name = str(item.get("apiVersion")), item["kind"]
    known = next((kind for kind in kinds if kind.describes(api_version, name)), None)
    if known is not None:
        return known
    versions = sorted(str(kind.api_version) for kind in kinds if name in (kind.name, *kind.aliases))
    hint = f"; known is {' and '.join(f'`{each}`' for each in versions)}" if versions else ""
    return f"`{api_version}` `{name}` is not a kind that jobgen knows{hint}"


def _named(marked: Data) -> Data:
    """What a generator would have to fill in before anybody can tell the job from others."""
    metadata = marked["metadata"]
    return [metadata.get(key) for key in ("name", "generateName", "namespace")]


def _unproven(problems: Sequence[str]) -> str:
    said = f": {problems[0]}" if problems else ""
    return f"no spec renders to exactly this object{said}"
