"""Import one manifest: find the shortest spec that renders to it, and format it with its comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobgen.features.convert.importing.comments import (
    CommentBlock,
    find_comments,
    place_at_same_fields,
    place_by_rendering,
)
from jobgen.features.convert.importing.invert import build_candidates, to_spec_name
from jobgen.features.convert.importing.pod_fields import remove_server_fields
from jobgen.features.convert.importing.verify import Difference, renderer_for
from jobgen.model.data import Node, Plain
from jobgen.spec.kinds import Kind
from jobgen.yamlio.commented import count_lines, format_document
from jobgen.yamlio.read import read
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
