"""Manifests that people already have to job specs, each proven: what it renders to is the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobgen.convert.importing.comments import Remark, carried, remarks_in, with_remarks
from jobgen.convert.importing.format_yaml import format_document
from jobgen.convert.importing.invert import Difference, build_candidates, to_spec_name
from jobgen.convert.importing.server_fields import without_server_fields
from jobgen.convert.importing.verify import renderer_for
from jobgen.model.data import Data
from jobgen.spec.kinds import Kind
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml


class ImportedSpec(NamedTuple):
    """A spec that renders to a manifest, or the manifest itself if it is no job; and what was left out of it."""

    document: dict[str, Data]
    text: str
    kind: Kind
    manifest: dict[str, Data]
    dropped: tuple[str, ...]
    lost: tuple[Remark, ...] = ()
    is_spec: bool = True

    @property
    def name(self) -> str:
        """The name of the job."""
        metadata = self.document["metadata"]
        # It becomes the name of a file, and that of a manifest may be anything.
        return to_spec_name(str(metadata.get("name", metadata.get("generateName", ""))))


class ImportFailure(NamedTuple):
    """A manifest for which no spec was found, with what the best one makes otherwise."""

    differences: tuple[Difference, ...]
    problems: tuple[str, ...]


def import_manifest(manifest: dict[str, Data], kind: Kind, kinds: Sequence[Kind]) -> ImportedSpec | ImportFailure:
    """The shortest proven spec of a manifest."""
    clean, dropped = without_server_fields(manifest)
    bench = renderer_for(kind.platform, kinds)
    found: list[ImportedSpec] = []
    failed: ImportFailure | None = None
    for attempt in build_candidates(clean, kind, bench):
        if attempt.differences or attempt.problems:
            failed = failed or ImportFailure(attempt.differences, attempt.problems)
            continue
        text = format_document(attempt.document)
        # What is written must be read as what was proven.
        if [each.data for each in read(text.encode(), "").documents] == [attempt.document]:
            found.append(ImportedSpec(attempt.document, text, kind, clean, tuple(dropped)))
    return min(found, key=lambda each: each.text.count("\n")) if found else failed or ImportFailure((), ())


def keep_manifest(manifest: dict[str, Data], kind: Kind) -> ImportedSpec:
    """A manifest that is no job, without what a server wrote: it goes through overlays as it is."""
    clean, dropped = without_server_fields(manifest)
    return ImportedSpec(clean, to_yaml(clean), kind, clean, tuple(dropped), is_spec=False)


def add_comments(spec: ImportedSpec, marked: Data, remarks: list[Remark], kinds: Sequence[Kind]) -> ImportedSpec:
    """The spec with the comments of its manifest, as far as they have a place in it."""
    if not remarks:
        return spec
    bench = renderer_for(spec.kind.platform, kinds)
    text, lost, crowded = with_remarks(spec.text, remarks, marked, spec.kind, bench)
    if crowded:
        text, lost, _ = with_remarks(format_document(spec.document, crowded), remarks, marked, spec.kind, bench)
    if [each.data for each in read(text.encode(), "").documents] != [spec.document]:
        return spec._replace(lost=tuple(remarks))
    return spec._replace(text=text, lost=tuple(lost))


def rewrite_document(before: str, after: dict[str, Data]) -> str:
    """A changed document, with the comments that the text of the old one had where the same fields stand."""
    lines = before.split("\n")
    [marked] = [document.data for document in read(before.encode(), "", marked=True).documents]
    remarks = remarks_in(lines, marked, 1, len(lines))
    text = format_document(after)
    woven, _, crowded = carried(text, remarks, marked)
    if crowded:
        woven, _, _ = carried(format_document(after, crowded), remarks, marked)
    return woven if [document.data for document in read(woven.encode(), "").documents] == [after] else text
