"""Import all manifests of some files; for each that cannot be imported, report the reason and the line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jobgen.features.convert.importing.comments import find_comments
from jobgen.features.convert.importing.import_job import (
    ImportedSpec,
    ImportFailure,
    add_comments,
    import_manifest,
    keep_manifest,
    rewrite_document,
)
from jobgen.features.convert.importing.patch import find_duplicate_items
from jobgen.features.convert.importing.server_fields import find_placeholders, remove_server_fields
from jobgen.features.convert.importing.services import HostService, ServiceKey, get_key, is_service, match_services
from jobgen.model.data import Location, Plain, TracedList, location_of, value_of
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted
from jobgen.model.suggest import find_closest
from jobgen.render import config
from jobgen.render.build import is_spec, manifest_errors, split_list
from jobgen.render.missing_images import find_missing_images
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import get_at
from jobgen.yamlio.read import YamlDocument, read
from jobgen.yamlio.write import to_inline_yaml, to_yaml

_COPY = "copy the manifest to `jobs/`"
_CHANGE = "`jobgen lint --fix-unsafe` changes the version if the rest fits; then import it again, else rewrite it"
_MISSPELLED = 0.9
"""How similar groups are of which one is a misspelling of the other."""


class SkippedManifest(NamedTuple):
    """A document that cannot be imported: its location, and why."""

    location: Location
    reason: str
    details: tuple[str, ...] = ()
    kind: str = ""
    name: str = ""
    """The name of an object of another kind, which can be copied as it is."""
    text: str = ""
    """The text of that object."""
    manifest: Mapping[str, Plain] = MappingProxyType({})
    """The data of that object."""
    is_lost: bool = True
    """Whether something is missing in the result; False if there is no object, or it is imported from elsewhere."""


class ImportedManifest(NamedTuple):
    """The location of a manifest, its spec, and notes about it."""

    location: Location
    spec: ImportedSpec
    notes: tuple[tuple[Location, str], ...] = ()


def collect_manifests(
    entries: Iterable[FileEntry], kinds: Sequence[Kind]
) -> Iterator[ImportedManifest | SkippedManifest]:
    """Import or skip every object of some files, in order."""
    read_files: list[tuple[File, list[YamlDocument], list[Finding]]] = []
    for entry in entries:
        file = read_file(entry)
        findings: list[Finding] = []
        read_files.append((file, list(config.read_documents(file, findings).documents), findings))
    objects = (item for _, documents, _ in read_files for each in documents for item in split_list(each.data))
    services = match_services(objects, kinds)
    for file, documents, findings in read_files:
        yield from (SkippedManifest(finding.location, finding.message) for finding in findings)
        if not (documents or findings):
            yield SkippedManifest(Location(file.path), "the file holds no object", is_lost=False)
        for position, document in enumerate(documents):
            yield from _import_document(file, position, document, kinds, services)


def _import_document(
    file: File,
    position: int,
    document: YamlDocument,
    kinds: Sequence[Kind],
    services: Mapping[ServiceKey, HostService],
) -> Iterator[ImportedManifest | SkippedManifest]:
    """Import a document, or every item of a List."""
    traced: Any = read(file.content, file.path, traced=True).documents[position].data
    lines = file.content.decode("utf-8").replace("\r\n", "\n").split("\n")
    bounds = find_bounds(lines, document.location.line)
    items, traced_items = split_list(document.data), split_list(traced)
    if not items:
        yield SkippedManifest(document.location, f"the `{document.data.get('kind')}` has no items", is_lost=False)
    is_single = len(items) == 1 and items[0] is document.data
    listed = None if is_single else traced.get("items")
    starts = listed.item_locations if isinstance(listed, TracedList) else []
    for index, (item, traced_item) in enumerate(zip(items, traced_items, strict=True)):
        location, item_bounds = document.location, bounds
        if index < len(starts):
            location = starts[index]
            last = starts[index + 1].line - 1 if index + 1 < len(starts) else bounds[1]
            item_bounds = (location.line, last)
        service = services.get(get_key(item)) if is_service(item) else None
        if service is None:
            imported = _import_object(item, traced_item, location, kinds, lines, item_bounds)
            if isinstance(imported, SkippedManifest) and imported.name:
                text = _copy_text(lines, bounds, item)
                imported = imported._replace(text=text, manifest=remove_server_fields(item)[0])
            yield _add_service(imported, services)
        elif service.spec is None:
            note = f"the pods of `{service.job}` have their names from this Service; it is kept as a manifest"
            yield ImportedManifest(location, keep_manifest(item, service.kind), ((location, note),))


def _copy_text(lines: list[str], bounds: tuple[int, int], item: Any) -> str:
    """The text of a document, with its comments; an item of a List is written from its data."""
    text = "\n".join(lines[bounds[0] - 1 : bounds[1]]).strip("\n") + "\n"
    return text if [document.data for document in read(text.encode(), "").documents] == [item] else to_yaml(item)


def _add_service(
    imported: ImportedManifest | SkippedManifest, services: Mapping[ServiceKey, HostService]
) -> ImportedManifest | SkippedManifest:
    """Let jobgen render the Service of a job if it renders exactly the one that is imported with the job."""
    if isinstance(imported, SkippedManifest):
        return imported
    for key, service in services.items():
        if service.spec is not None and service.spec.manifest == imported.spec.manifest:
            document = service.spec.document
            spec = imported.spec._replace(document=document, text=rewrite_document(imported.spec.text, document))
            note = f"the Service `{key[1]}` is rendered with the job"
            return imported._replace(spec=spec, notes=(*imported.notes, (imported.location, note)))
    return imported


def find_bounds(lines: list[str], line: int) -> tuple[int, int]:
    """The first and the last line of the document at a line, including the comments before it."""
    first = next((number for number in range(line, 0, -1) if lines[number - 1].startswith("---")), 0) + 1
    after = (number for number in range(line + 1, len(lines) + 1) if lines[number - 1].startswith("---"))
    return first, next(after, len(lines) + 1) - 1


def _import_object(
    item: Any, traced: Any, location: Location, kinds: Sequence[Kind], lines: list[str], bounds: tuple[int, int]
) -> ImportedManifest | SkippedManifest:
    if isinstance(item, dict) and is_spec(item):
        return SkippedManifest(location, f"`{item.get('kind')}` is already a jobgen format")
    kind = _find_kind(item, kinds)
    if not isinstance(kind, Kind):
        skipped = SkippedManifest(location_of(traced) or location, kind)
        name = _name_other(item, traced) if kind.endswith(_COPY) else ""
        return skipped._replace(kind=item["kind"], name=name) if name else skipped
    errors = manifest_errors(traced)
    if errors:
        return SkippedManifest(location_of(errors[0].node) or location, errors[0].message)
    metadata = traced["metadata"]
    names = [metadata.get(key) for key in ("name", "generateName", "namespace")]
    if not any(map(value_of, names[:2])):
        return SkippedManifest(location, "the object has no name; set `metadata.name`")
    if not kind.frameworks:
        note = f"`{kind.name}` is not a job; it is kept as a manifest"
        return ImportedManifest(location, keep_manifest(item, kind), ((location, note),))
    for path, reason in kind.former_shapes.items():
        node = get_at(traced, path)
        if node is not None:
            return SkippedManifest(location_of(node) or location, f"`{format_dotted(path)}` {reason}")
    notes = tuple(
        (location_of(node) or location, f"`{value_of(node)}` contains a placeholder, which jobgen keeps unchanged")
        for node in find_placeholders(names)
    )
    spec = import_manifest(item, kind, kinds)
    if not isinstance(spec, ImportedSpec):
        return _explain_failure(spec, traced, location)
    missing = find_missing_images(traced, kinds)
    if missing:
        return SkippedManifest(missing[0].location or location, missing[0].message)
    comments = find_comments(lines, traced, *bounds)
    return ImportedManifest(location, add_comments(spec, traced, comments, kinds), notes)


def _explain_failure(failure: ImportFailure, traced: Any, location: Location) -> SkippedManifest:
    """Say why no spec renders to an object."""
    for node, name in find_duplicate_items(traced):
        reason = f"`{value_of(node)}` occurs twice in `{name}`, which a spec cannot express; delete one of them"
        return SkippedManifest(location_of(node) or location, reason)
    details = [
        f"`{format_dotted(path)}`: {to_inline_yaml(expected)} would become {to_inline_yaml(actual)}"
        for path, expected, actual in failure.differences
    ]
    problem = f": {failure.problems[0]}" if failure.problems else ""
    return SkippedManifest(location, f"no spec renders to exactly this object{problem}", tuple(details))


def _name_other(item: Any, traced: Any) -> str:
    """The name of an object of another kind; empty if it has an error or no name."""
    name = None if manifest_errors(traced) else item["metadata"].get("name")
    return name if isinstance(name, str) else ""


def _find_kind(item: Any, kinds: Sequence[Kind]) -> Kind | str:
    """The kind of an object, or why it is unknown."""
    if not isinstance(item, dict) or not isinstance(item.get("kind"), str):
        return "the object has no `kind`"
    api_version, name = str(item.get("apiVersion")), item["kind"]
    found = next((kind for kind in kinds if kind.describes(api_version, name)), None)
    if found is not None:
        return found
    versions = sorted(str(kind.api_version) for kind in kinds if name in (kind.name, *kind.aliases))
    if versions:
        known = ", ".join(f"`{each}`" for each in versions)
        groups = [each.rpartition("/")[0] for each in versions]
        group = api_version.rpartition("/")[0]
        if group not in groups and not find_closest(group, groups, _MISSPELLED):
            return f"`{api_version}` `{name}` is of another operator than {known}; {_COPY}"
        advice = f"; {_CHANGE}" if group in groups else ""
        return f"`{api_version}` `{name}` is not a kind that jobgen knows; known versions: {known}{advice}"
    return f"`{api_version}` `{name}` is not a kind that jobs are rendered as; {_COPY}"
