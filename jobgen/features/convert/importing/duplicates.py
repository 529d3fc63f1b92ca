"""Leave out objects that a repository cannot hold twice, and say where the first one is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from jobgen.features.convert.importing.collect import ImportedManifest, SkippedManifest
from jobgen.model.data import Plain
from jobgen.model.finding import Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.build import identity_of
from jobgen.repo.files import FileEntry

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
        known = by_path.setdefault(_find_path(own.identity), [])
        first = next(
            (one for one in known if one.platform == own.platform or not (one.platform and own.platform)), None
        )
        if first is not None:
            is_same = first.manifest == own.manifest
            reason = f"the same object is in {first.place}" if is_same else _explain_duplicate(own, first)
            yield SkippedManifest(each.location, reason, is_lost=not is_same)
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
    """Whether an object was left out because another file has it with other content."""
    return isinstance(each, SkippedManifest) and each.reason.endswith(_ADVICE)


class _Seen(NamedTuple):
    """An object that was found: `platform` and `job` are empty if it is not converted to a spec."""

    manifest: Mapping[str, Plain]
    identity: Identity
    place: str
    platform: str
    job: str


def _describe(each: ImportedManifest | SkippedManifest) -> _Seen | None:
    """Describe an object that is written; None if it is skipped anyway."""
    place = f"{each.location.file}:{each.location.line}"
    if isinstance(each, SkippedManifest):
        return _Seen(each.manifest, identity_of(each.manifest), place, "", "") if each.manifest else None
    spec = each.spec
    job, platform = (spec.name, spec.kind.platform) if spec.is_spec else ("", "")
    return _Seen(spec.manifest, identity_of(spec.manifest), place, platform, job)


def _find_path(identity: Identity) -> str:
    """Return what the file of an object in the rendered tree depends on."""
    return f"{identity.namespace or 'default'}/{identity.kind}-{identity.name}".casefold()


def _explain_duplicate(own: _Seen, first: _Seen) -> str:
    groups = {one.identity.api_version.rpartition("/")[0] for one in (own, first)}
    if len(groups) == 1 and own.identity[1:] == first.identity[1:]:
        return f"`{own.identity}` is also in {first.place}, with other content; {_ADVICE}"
    return f"`{own.identity}` would be rendered to the same file as `{first.identity}` in {first.place}; {_RENAME}"
