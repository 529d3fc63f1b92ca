"""Manifests that people already have to job specs, each proven: what it renders to is the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobgen.convert.importing.exported import without_server_fields
from jobgen.convert.importing.inverting import Difference, attempts, spec_name
from jobgen.convert.importing.layout import laid_out
from jobgen.convert.importing.proving import bench_for
from jobgen.convert.importing.remarks import Remark, carried, remarks_in, with_remarks
from jobgen.model.data import Data
from jobgen.spec.kinds import Kind
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml


class Imported(NamedTuple):
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
        return spec_name(str(metadata.get("name", metadata.get("generateName", ""))))


class Unproven(NamedTuple):
    """A manifest for which no spec was found, with what the best one makes otherwise."""

    differences: tuple[Difference, ...]
    problems: tuple[str, ...]


def imported(manifest: dict[str, Data], kind: Kind, kinds: Sequence[Kind]) -> Imported | Unproven:
    """The shortest proven spec of a manifest."""
    clean, dropped = without_server_fields(manifest)
    bench = bench_for(kind.platform, kinds)
    found: list[Imported] = []
    failed: Unproven | None = None
    for attempt in attempts(clean, kind, bench):
        if attempt.differences or attempt.problems:
            failed = failed or Unproven(attempt.differences, attempt.problems)
            continue
        text = laid_out(attempt.document)
        # What is written must be read as what was proven.
        if [each.data for each in read(text.encode(), "").documents] == [attempt.document]:
            found.append(Imported(attempt.document, text, kind, clean, tuple(dropped)))
    return min(found, key=lambda each: each.text.count("\n")) if found else failed or Unproven((), ())


def kept(manifest: dict[str, Data], kind: Kind) -> Imported:
    """A manifest that is no job, without what a server wrote: it goes through overlays as it is."""
    clean, dropped = without_server_fields(manifest)
    return Imported(clean, to_yaml(clean), kind, clean, tuple(dropped), is_spec=False)


def commented(spec: Imported, marked: Data, remarks: list[Remark], kinds: Sequence[Kind]) -> Imported:
    """The spec with the comments of its manifest, as far as they have a place in it."""
    if not remarks:
        return spec
    bench = bench_for(spec.kind.platform, kinds)
    text, lost, crowded = with_remarks(spec.text, remarks, marked, spec.kind, bench)
    if crowded:
        text, lost, _ = with_remarks(laid_out(spec.document, crowded), remarks, marked, spec.kind, bench)
    if [each.data for each in read(text.encode(), "").documents] != [spec.document]:
        return spec._replace(lost=tuple(remarks))
    return spec._replace(text=text, lost=tuple(lost))


def relaid(before: str, after: dict[str, Data]) -> str:
    """A changed document, with the comments that the text of the old one had where the same fields stand."""
    lines = before.split("\n")
    [marked] = [document.data for document in read(before.encode(), "", marked=True).documents]
    remarks = remarks_in(lines, marked, 1, len(lines))
    text = laid_out(after)
    woven, _, crowded = carried(text, remarks, marked)
    if crowded:
        woven, _, _ = carried(laid_out(after, crowded), remarks, marked)
    return woven if [document.data for document in read(woven.encode(), "").documents] == [after] else text
