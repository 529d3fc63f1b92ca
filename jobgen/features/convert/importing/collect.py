"""Import manifests: for each the shortest spec that renders to it, or the reason why it cannot be imported."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jobgen.features.convert.importing.comments import (
    CommentBlock,
    find_comments,
    place_at_same_fields,
    place_by_rendering,
)
from jobgen.features.convert.importing.invert import build_candidates, to_spec_name
from jobgen.features.convert.importing.pod_fields import find_placeholders, remove_server_fields
from jobgen.features.convert.importing.verify import (
    Difference,
    find_duplicate_items,
    format_differences,
    is_equivalent,
    render_objects,
    renderer_for,
)
from jobgen.model.data import Location, Node, Plain, TracedList, location_of, value_of
from jobgen.model.finding import Finding, Identity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted
from jobgen.model.suggest import find_closest
from jobgen.recognize import CONFIG
from jobgen.recognize.objects import is_object
from jobgen.recognize.programs import name_program
from jobgen.rendering import config
from jobgen.rendering.build import identity_of, is_spec, manifest_errors, split_list
from jobgen.rendering.patch_objects import find_missing_images
from jobgen.rendering.redact import redact_findings
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import find_template, get_at
from jobgen.yamlio.commented import count_lines, format_document
from jobgen.yamlio.read import YamlDocument, read
from jobgen.yamlio.write import to_yaml


class ImportedSpec(NamedTuple):
    """A spec that renders to a manifest, or the manifest itself if it is not a job.

    `removed` are the paths of server fields, `lost_comments` the comments without a place in the spec.
    """

    document: dict[str, Plain]
    text: str
    kind: Kind
    manifest: dict[str, Plain]
    removed: tuple[str, ...]
    lost_comments: tuple[CommentBlock, ...] = ()
    is_spec: bool = True
    companions: tuple[dict[str, Plain], ...] = ()
    """The objects that are rendered beside it and were imported with it: the Service of its pods."""
    is_placed: bool = False
    """True if the manifest has no namespace, and the overlays of the repository give it theirs where it is."""

    @property
    def name(self) -> str:
        """The name of the job, which is also a valid file name."""
        metadata = self.document["metadata"]
        assert isinstance(metadata, dict), "checked before import"
        return to_spec_name(str(metadata.get("name", metadata.get("generateName", ""))))

    @property
    def framework(self) -> str:
        """The framework of the spec; empty if it is a manifest."""
        spec = self.document.get("spec")
        return str(spec["framework"]) if self.is_spec and isinstance(spec, dict) else ""


class ImportFailure(NamedTuple):
    """Why no spec renders to a manifest: the differences or problems of the first candidate."""

    differences: tuple[Difference, ...]
    problems: tuple[str, ...]


def import_manifest(manifest: dict[str, Plain], kind: Kind, kinds: Sequence[Kind]) -> ImportedSpec | ImportFailure:
    """Find the shortest spec that renders to a manifest."""
    clean, removed = remove_server_fields(manifest)
    renderer = renderer_for(kind.platform, kinds)
    found: list[dict[str, Plain]] = []
    failure = ImportFailure((), ())
    for candidate in build_candidates(clean, kind, renderer):
        if not (candidate.differences or candidate.problems):
            found.append(candidate.document)
        elif failure == ((), ()):
            failure = ImportFailure(candidate.differences, candidate.problems)
    specs = [ImportedSpec(document, "", kind, clean, tuple(removed)) for document in found]
    # The first framework is the most likely one, even if the spec of another is shorter.
    likely = [spec for spec in specs if spec.framework == specs[0].framework]
    for spec in sorted(likely, key=lambda each: count_lines(each.document)):
        text = format_document(spec.document)
        if _reads_as(text, spec.document):
            return spec._replace(text=text)
    return failure


def keep_manifest(manifest: dict[str, Plain], kind: Kind) -> ImportedSpec:
    """Import a manifest that is not a job: remove server fields, and keep the rest."""
    clean, removed = remove_server_fields(manifest)
    return ImportedSpec(clean, to_yaml(clean), kind, clean, tuple(removed), is_spec=False)


def add_comments(
    spec: ImportedSpec, manifest: Node, comments: list[CommentBlock], kinds: Sequence[Kind]
) -> ImportedSpec:
    """Add the comments of a traced manifest to its spec, as far as they have a place in it."""
    if not comments:
        return spec
    renderer = renderer_for(spec.kind.platform, kinds)
    placed = place_by_rendering(comments, manifest, spec.document, spec.kind, renderer)
    text = format_document(spec.document, placed.comments)
    if not _reads_as(text, spec.document):
        return spec._replace(lost_comments=tuple(comments))
    return spec._replace(text=text, lost_comments=tuple(placed.lost))


def rewrite_document(old_text: str, document: Mapping[str, Plain]) -> str:
    """Format a changed document, with the comments of the old text at the fields that both have."""
    lines = old_text.split("\n")
    [traced] = [each.data for each in read(old_text.encode(), "", traced=True).documents]
    placed = place_at_same_fields(find_comments(lines, traced, 1, len(lines)), traced, document)
    text = format_document(document, placed.comments)
    return text if _reads_as(text, document) else format_document(document)


def _reads_as(text: str, document: Mapping[str, Plain]) -> bool:
    """Return True if a YAML text has exactly this content."""
    return [each.data for each in read(text.encode(), "").documents] == [document]


ServiceKey = tuple[str, str]
"""The namespace and the name of a Service."""


class HostService(NamedTuple):
    """A Service that gives the pods of a job their DNS names."""

    job: str
    kind: Kind
    """The kind of the job."""
    spec: ImportedSpec | None
    """The spec of the job if jobgen renders the Service with it."""


def is_service(item: Any) -> bool:
    """Return True if an object is a Service."""
    return isinstance(item, dict) and item.get("apiVersion") == "v1" and item.get("kind") == "Service"


def get_key(item: Any, name: str = "") -> ServiceKey:
    """Return the key of a Service, or of the one with a name in the namespace of an object."""
    metadata = item.get("metadata") if isinstance(item.get("metadata"), dict) else {}
    return str(metadata.get("namespace") or ""), name or str(metadata.get("name") or "")


def match_services(objects: Iterable[Any], kinds: Sequence[Kind]) -> dict[ServiceKey, HostService]:
    """Find the Services that the pods of jobs name as their subdomain."""
    listed = [item for item in objects if isinstance(item, dict)]
    services = {get_key(item): item for item in listed if is_service(item)}
    found: dict[ServiceKey, HostService] = {}
    for item in listed if services else ():
        kind = next(
            (each for each in kinds if each.describes(str(item.get("apiVersion")), str(item.get("kind")))), None
        )
        if kind is None or kind.network is None or not kind.network.has_service:
            continue
        key = get_key(item, _find_subdomain(item, kind))
        if key in services:
            found[key] = HostService(get_key(item)[1], kind, _render_service(item, services[key], kind, kinds))
    return found


def _find_subdomain(item: dict[str, Plain], kind: Kind) -> str:
    """The subdomain of the pods of a job; a name that no Service has if there is none."""
    templates = (find_template(each.data, kind.replicas) for each in kind.list_items(item))
    specs = (template.get("spec") for template in templates if isinstance(template, dict))
    return next((str(spec["subdomain"]) for spec in specs if isinstance(spec, dict) and "subdomain" in spec), " ")


def _render_service(item: dict[str, Plain], service: Any, kind: Kind, kinds: Sequence[Kind]) -> ImportedSpec | None:
    """The spec of a job with which jobgen renders exactly this Service; None if there is none."""
    imported = import_manifest(item, kind, kinds)
    if not isinstance(imported, ImportedSpec):
        return None
    document: Any = copy.deepcopy(imported.document)
    block = document["spec"].get(kind.platform)
    if not isinstance(block, dict) or block.pop("service", None) is None:
        return None
    if not block:
        del document["spec"][kind.platform]
    objects, problems = render_objects(document, renderer_for(kind.platform, kinds))
    wanted = [imported.manifest, remove_server_fields(service)[0]]
    if problems or len(objects) != len(wanted) or not all(map(is_equivalent, objects, wanted)):
        return None
    return imported._replace(document=document, text=format_document(document), companions=(wanted[1],))


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
    """True if something is missing in the result; False if there is no object, or it is imported from elsewhere."""
    sort: str = ""
    """What a file was taken for that is left out as a whole."""
    builder: str = ""
    """The kustomization that builds the object; empty if it is written as it is."""
    is_spec: bool = False
    """True for a document of jobgen itself."""
    twin: str = ""
    """The file, or the kustomization, that has the same object."""

    @property
    def origin(self) -> str:
        """The file that it is in, or the kustomization that builds it."""
        return self.builder or self.location.file


class ImportedManifest(NamedTuple):
    """The location of a manifest, its spec, and notes about it."""

    location: Location
    spec: ImportedSpec
    notes: tuple[tuple[Location, str], ...] = ()
    builder: str = ""
    """The kustomization that builds it; empty if it is written as it is."""

    @property
    def origin(self) -> str:
        """The file that it is in, or the kustomization that builds it."""
        return self.builder or self.location.file


def _explain(finding: Finding) -> str:
    """Return why a file is not read; a template is meant to be one, so nothing in it must be quoted."""
    if finding.rule != "template-text":
        return finding.message
    return "this is a template; render it first, such as with `helm template … | jobgen import -`"


def collect_manifests(
    entries: Iterable[FileEntry], kinds: Sequence[Kind]
) -> Iterator[ImportedManifest | SkippedManifest]:
    """Import or skip every object of some files, in order."""
    listed = list(entries)
    read_files = [_read_documents(entry) for entry in listed if entry.build is None]
    built = [(each, entry.build.file) for entry in listed if entry.build for each in entry.build().objects]
    objects = [item for one in read_files for each in one.documents for item in split_list(each.data)]
    services = match_services([*objects, *(each.data for each, _ in built)], kinds)
    for file, documents, findings, is_optional in read_files:
        yield from (SkippedManifest(each.location, _explain(each)) for each in findings)
        if not (documents or findings):
            yield SkippedManifest(Location(file.path), "the file holds no object", is_lost=False)
        elif is_optional and documents and not any(is_object(each.data) for each in documents):
            why = name_program(file.path, [each.data for each in documents])
            reason = f"it is treated as `{CONFIG.name}`, because {why}"
            yield SkippedManifest(Location(file.path), reason, is_lost=False, sort=CONFIG.name)
            continue
        for position, document in enumerate(documents):
            yield from _import_document(file, position, document, kinds, services)
    for each, builder in built:
        for made in _import_item(_Item(dict(each.data), each.traced, each.location, [], (1, 0)), kinds, services):
            yield made._replace(builder=builder)


class _ReadFile(NamedTuple):
    file: File
    documents: list[YamlDocument]
    findings: list[Finding]
    is_optional: bool


def _read_documents(entry: FileEntry) -> _ReadFile:
    file = read_file(entry)
    findings: list[Finding] = []
    documents = list(config.read_documents(file, findings).documents)
    return _ReadFile(file, documents, redact_findings(findings, [file]) if findings else [], entry.optional)


class _Item(NamedTuple):
    """An object, and the lines that it is written on; one that a kustomization builds has none."""

    data: Any
    traced: Any
    location: Location
    lines: list[str]
    bounds: tuple[int, int]
    document_bounds: tuple[int, int] = (1, 0)


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
        yield from _import_item(_Item(item, traced_item, location, lines, item_bounds, bounds), kinds, services)


def _import_item(
    item: _Item, kinds: Sequence[Kind], services: Mapping[ServiceKey, HostService]
) -> Iterator[ImportedManifest | SkippedManifest]:
    """Import an object, unless it is a Service that jobgen renders with a job."""
    service = services.get(get_key(item.data)) if is_service(item.data) else None
    if service is None:
        imported = _import_object(item, kinds)
        if isinstance(imported, SkippedManifest) and imported.name:
            text = _copy_text(item.lines, item.document_bounds, item.data)
            imported = imported._replace(text=text, manifest=remove_server_fields(item.data)[0])
        yield _add_service(imported, services)
    elif service.spec is None:
        note = f"the pods of `{service.job}` get their names from this Service; it is kept as a manifest"
        yield ImportedManifest(item.location, keep_manifest(item.data, service.kind), ((item.location, note),))


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
            text = rewrite_document(imported.spec.text, document)
            spec = imported.spec._replace(document=document, text=text, companions=service.spec.companions)
            note = f"the Service `{key[1]}` is rendered with the job"
            return imported._replace(spec=spec, notes=(*imported.notes, (imported.location, note)))
    return imported


def find_bounds(lines: list[str], line: int) -> tuple[int, int]:
    """The first and the last line of the document at a line, including the comments before it."""
    first = next((number for number in range(line, 0, -1) if lines[number - 1].startswith("---")), 0) + 1
    after = (number for number in range(line + 1, len(lines) + 1) if lines[number - 1].startswith("---"))
    return first, next(after, len(lines) + 1) - 1


def _import_object(found: _Item, kinds: Sequence[Kind]) -> ImportedManifest | SkippedManifest:
    item, traced, location = found.data, found.traced, found.location
    if isinstance(item, dict) and is_spec(item):
        return SkippedManifest(location, f"`{item.get('kind')}` is already a jobgen format", is_spec=True)
    kind = _find_kind(item, kinds)
    if not isinstance(kind, Kind):
        skipped = SkippedManifest(location_of(traced) or location, kind)
        name = _name_other(item, traced) if kind.endswith(_COPY) else ""
        return skipped._replace(kind=item["kind"], name=name) if name else skipped
    errors = manifest_errors(traced)
    if errors:
        return SkippedManifest(location_of(errors[0].node) or location, str(errors[0].sentence))
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
        return SkippedManifest(missing[0].location or location, str(missing[0].sentence))
    comments = find_comments(found.lines, traced, *found.bounds) if found.lines else []
    return ImportedManifest(location, add_comments(spec, traced, comments, kinds), notes)


def _explain_failure(failure: ImportFailure, traced: Any, location: Location) -> SkippedManifest:
    """Say why no spec renders to an object."""
    for node, name in find_duplicate_items(traced):
        advice = "delete the first one: containers get the last one" if name == "env" else "delete one of them"
        reason = f"`{value_of(node)}` occurs twice in `{name}`, which a spec cannot express; {advice}"
        return SkippedManifest(location_of(node) or location, reason)
    problem = f": {failure.problems[0]}" if failure.problems else ""
    details = tuple(format_differences(failure.differences))
    return SkippedManifest(location, f"no spec renders to exactly this object{problem}", details)


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
            return f"`{api_version}` `{name}` belongs to another operator than {known}; {_COPY}"
        advice = f"; {_CHANGE}" if group in groups else ""
        return f"`{api_version}` `{name}` is not a kind that jobgen knows; known versions: {known}{advice}"
    return f"`{api_version}` `{name}` is not a kind that jobs are rendered as; {_COPY}"


_LINKED = "a symbolic link to another of these files"
_RENAME = "rename one of them"
_ADVICE = f"import each folder as an environment with `--environment NAME=FOLDER`, or {_RENAME}"


def skip_linked_copies(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """Read each file once: a symbolic link to another one of the files is not a second file."""
    listed = list(entries)
    files = {os.path.realpath(entry.full) for entry in listed if entry.full and not os.path.islink(entry.full)}
    return [
        entry._replace(skipped=_LINKED)
        if entry.full and os.path.islink(entry.full) and os.path.realpath(entry.full) in files
        else entry
        for entry in listed
    ]


def leave_out_duplicates(
    found: Iterable[ImportedManifest | SkippedManifest], *, has_overlays: bool
) -> Iterator[ImportedManifest | SkippedManifest]:
    """Yield each object once; one that cannot be rendered beside an earlier one is skipped.

    An object with the same data is the same, for example an export next to its manifest. Overlays that exist select a
    job by its name, so they cannot tell jobs of two platforms apart.
    """
    by_path: dict[str, list[_Seen]] = {}
    by_name: dict[str, _Seen] = {}
    for each in found:
        own = _describe(each)
        if own is None:
            yield each
            continue
        known = by_path.setdefault(
            f"{own.identity.namespace or 'default'}/{own.identity.kind}-{own.identity.name}".casefold(), []
        )
        first = next(
            (one for one in known if one.platform == own.platform or not (one.platform and own.platform)), None
        )
        if first is not None:
            is_same = first.manifest == own.manifest
            reason = f"the same object is in {first.place}" if is_same else _explain_duplicate(own, first)
            twin = first.origin if is_same else ""
            yield SkippedManifest(each.location, reason, is_lost=not is_same, builder=each.builder, twin=twin)
            continue
        other = by_name.setdefault(own.job, own) if own.job else own
        if has_overlays and other.platform != own.platform:
            reason = f"`{own.job}` is also a job of platform `{other.platform}` in {other.place}, and"
            yield SkippedManifest(
                each.location, f"{reason} the overlays of the repository would select both; {_RENAME}"
            )
            continue
        known.append(own)
        yield each


def is_conflict(each: ImportedManifest | SkippedManifest) -> bool:
    """Return True if an object was left out because another file has it with other content."""
    return isinstance(each, SkippedManifest) and each.reason.endswith(_ADVICE)


class _Seen(NamedTuple):
    """An object that was found: `platform` and `job` are empty if it is not converted to a spec."""

    manifest: Mapping[str, Plain]
    identity: Identity
    place: str
    platform: str
    job: str
    origin: str


def _describe(each: ImportedManifest | SkippedManifest) -> _Seen | None:
    """Describe an object that is written; None if it is skipped anyway."""
    place = f"{each.location.file}:{each.location.line}"
    if isinstance(each, SkippedManifest):
        return _Seen(each.manifest, identity_of(each.manifest), place, "", "", each.origin) if each.manifest else None
    spec = each.spec
    job, platform = (spec.name, spec.kind.platform) if spec.is_spec else ("", "")
    return _Seen(spec.manifest, identity_of(spec.manifest), place, platform, job, each.origin)


_OLD_COPY = lazy_pattern(r"(?i)(?:[-_. ]|^)(?:old|bak|backup|copy|orig|original|previous)(?=[-_. ]|$)")


def _ask_to_delete(own: _Seen, first: _Seen) -> str:
    """Return which of two files to delete: that whose name says that it is an old copy."""
    files = [one.place.rpartition(":")[0] for one in (own, first)]
    old = [file for file in files if _OLD_COPY.search(os.path.basename(file))]
    return f"delete `{old[0]}` if it is an old copy" if len(old) == 1 else "delete the one that is not used"


def _explain_duplicate(own: _Seen, first: _Seen) -> str:
    groups = {one.identity.api_version.rpartition("/")[0] for one in (own, first)}
    if len(groups) == 1 and own.identity[1:] == first.identity[1:]:
        return f"`{own.identity}` is also in {first.place}, with other content; {_ask_to_delete(own, first)}, {_ADVICE}"
    return f"`{own.identity}` would be rendered to the same file as `{first.identity}` in {first.place}; {_RENAME}"
