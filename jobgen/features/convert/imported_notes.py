"""What a folder of manifests becomes, and the notes about what is left out or kept as it is."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping

from jobgen.features.convert.importing.collect import ImportedManifest, SkippedManifest
from jobgen.features.convert.importing.pod_fields import remove_server_fields
from jobgen.features.convert.migrate.draft import rewrite_job
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.files import File, FileEntry
from jobgen.reports.escape import visible
from jobgen.yamlio.read import read

_FILE = lazy_pattern(r"[a-z0-9][a-z0-9.-]{0,200}")
_MAX_SHOWN = 8
_MAX_UNREAD = 20


def is_lost(each: ImportedManifest | SkippedManifest) -> bool:
    """Return True if an object is not imported, so that the import is incomplete."""
    return isinstance(each, SkippedManifest) and each.is_lost


def is_copied(each: SkippedManifest) -> bool:
    """Return True if an object of another kind is copied. Its name comes from a manifest, so it is untrusted."""
    return bool(each.name) and _FILE.fullmatch(f"{each.kind}-{each.name}".lower()) is not None


def clean_other(each: SkippedManifest) -> tuple[str, str]:
    """Return the text of an object of another kind without the fields that a cluster wrote, and these fields."""
    file = File(each.location.file, each.text.encode())
    [document] = read(file.content, file.path).documents
    clean, removed = remove_server_fields(document.data)
    written = [f"`{path}`" for path in removed if not path.endswith("(null)")]
    return (rewrite_job(file, 0, clean), ", ".join(written)) if written else (each.text, "")


def explain_kustomization(each: ImportedManifest | SkippedManifest) -> ImportedManifest | SkippedManifest:
    """Say what to do about a kustomization, which other programs build."""
    folder, _, name = each.location.file.rpartition("/")
    if isinstance(each, SkippedManifest) and name.lower().partition(".")[0] == "kustomization":
        command = f"kubectl kustomize {shlex.quote(folder or '.')} | jobgen import - -o jobs"
        return each._replace(reason=f"a kustomization is not built; run `{command}`")
    return each


def list_unread(entries: Iterable[FileEntry]) -> str:
    """List what is not read, or count it if it is much."""
    unread = [entry for entry in entries if entry.skipped]
    if len(unread) <= _MAX_UNREAD:
        return "".join(f"{visible(entry.path)}: not read: {entry.skipped}\n" for entry in unread)
    counts = Counter(entry.skipped for entry in unread)
    return "".join(f"{count} files and folders not read: {reason}\n" for reason, count in sorted(counts.items()))


def format_all_notes(found: Iterable[ImportedManifest | SkippedManifest], paths: Mapping[int, str]) -> str:
    """Return the notes about all manifests; `paths` has the files to which they are written, by id."""
    return "".join(format_notes(each, paths.get(id(each), "")) for each in found)


def format_notes(each: ImportedManifest | SkippedManifest, path: str = "") -> str:
    """Return the notes about one manifest, and where it is if it is kept as it is."""
    where = f"{each.location.file}:{each.location.line}"
    if isinstance(each, SkippedManifest):
        shown = [*each.details[:_MAX_SHOWN], *(["…"] if len(each.details) > _MAX_SHOWN else [])]
        verdict = "not imported" if each.is_lost else "nothing to import"
        lines = [f"{each.location}: {verdict}: {each.reason}", *(f"  {detail}" for detail in shown)]
    else:
        removed = each.spec.removed
        place = f", in {path}" if path and not each.spec.is_spec else ""
        lines = [f"{location}: {note}{place}" for location, note in each.notes]
        lines += [f"{where}: left out: {', '.join(f'`{path}`' for path in removed)}"] if removed else []
        lines += (
            f"{each.location.file}:{remark.line}: the comment was not converted: {' '.join(remark.texts)}"
            for remark in each.spec.lost_comments
        )
    return "".join(f"{visible(line)}\n" for line in lines)
