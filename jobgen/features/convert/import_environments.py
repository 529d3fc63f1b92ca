"""Import folders that are copies of the same objects, one for each environment, and note what is left out."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from jobgen.api.render import render
from jobgen.cli.result import write_files
from jobgen.cli.starter import Converted
from jobgen.features.convert.importing.arrange import EnvironmentObject, Failure, join_environments
from jobgen.features.convert.importing.collect import (
    ImportedManifest,
    SkippedManifest,
    collect_manifests,
    is_conflict,
    leave_out_duplicates,
)
from jobgen.features.convert.importing.pod_fields import remove_server_fields
from jobgen.features.convert.importing.sources import find_sources, shorten_list
from jobgen.features.convert.importing.verify import is_equivalent
from jobgen.features.convert.migrate.draft import rewrite_job
from jobgen.model.data import Plain
from jobgen.model.finding import Identity, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering.build import identity_of
from jobgen.repo.atomic import open_scratch
from jobgen.repo.files import File
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind
from jobgen.yamlio.read import read

_FILE = lazy_pattern(r"[a-z0-9][a-z0-9.-]{0,200}")
_MAX_SHOWN = 8


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


_ENVIRONMENT = lazy_pattern(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


_USUAL = frozenset(
    "canary dev development int integration live local preprod prod production qa sandbox stage staging stg test "
    "testing uat".split()
)
"""What environments are usually called."""


def parse_environments(texts: Sequence[str]) -> dict[str, str] | str:
    """Return the folder of each environment in texts such as `dev=manifests/dev`, or what is wrong with them."""
    folders: dict[str, str] = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or not folder or not _ENVIRONMENT.fullmatch(name):
            return f"`{text}` is not an environment and its folder; write `--environment prod=FOLDER`"
        if name in folders:
            return f"the environment `{name}` is named twice"
        folders[name] = folder
    return folders


def find_environment_folders(
    origins: Sequence[str], found: Sequence[ImportedManifest | SkippedManifest]
) -> dict[str, str]:
    """Return the folders that are environments, by name; empty if there are none.

    They are beside each other and hold all manifests, or the kustomizations that build them. Two of them have an object
    of the same identity with other content, so that one cluster cannot have both, or they are called like environments,
    and two of them have an object of the same name.
    """
    if len(origins) < 2:
        return {}
    top = posixpath.commonpath([posixpath.dirname(path) or "." for path in origins])
    below = [posixpath.relpath(path, top).split("/") for path in origins]
    names = sorted({parts[0] for parts in below if len(parts) > 1})
    is_complete = all(len(parts) > 1 for parts in below) and all(map(_ENVIRONMENT.fullmatch, names))
    if not is_complete or len(names) < 2:
        return {}
    if not any(map(is_conflict, found)) and not (_USUAL.issuperset(names) and _repeat_name(top, found)):
        return {}
    return {name: posixpath.join(top, name) for name in names}


def _repeat_name(top: str, found: Sequence[ImportedManifest | SkippedManifest]) -> bool:
    """Return True if two folders have a job of the same name, or the same object."""
    folders: dict[str, str] = {}
    imported = [each for each in found if isinstance(each, ImportedManifest)]
    pairs = [(each.spec.name, _find_folder(top, each.origin)) for each in imported]
    copies = [each for each in found if isinstance(each, SkippedManifest) and each.twin]
    return any(folders.setdefault(name, folder) != folder for name, folder in pairs) or any(
        _find_folder(top, each.origin) != _find_folder(top, each.twin) for each in copies
    )


def _find_folder(top: str, path: str) -> str:
    return posixpath.relpath(path, top).split("/")[0]


def convert_environments(
    directory: Path, folders: Mapping[str, str], kinds: Sequence[Kind], within: str = ""
) -> Converted:
    """Convert the manifests of each environment to common specs and overlays that render to them again."""
    objects: list[EnvironmentObject] = []
    notes, left_out = "", 0
    for env, folder in folders.items():
        sources = find_sources(directory, [folder], within=within)
        collected = collect_manifests(sources.entries, kinds)
        found = list(leave_out_duplicates(collected, has_overlays=False))
        copied = {id(each) for each in found if isinstance(each, SkippedManifest) and is_copied(each)}
        objects += (_describe(env, each) for each in found if isinstance(each, ImportedManifest) or id(each) in copied)
        rest = [each for each in found if id(each) not in copied]
        listed, counts = shorten_list([*sources.left_out])
        notes += sources.hide_secrets("".join(map(format_notes, [*rest, *listed]))) + counts + sources.notes
        left_out += sum(map(is_lost, (*rest, *sources.left_out)))
    files, failures = _join_verified(list(folders), objects, kinds)
    notes += "".join(visible(f"{each.place}: not imported: {reason}") + "\n" for each, reason in failures)
    failed = {_key_of(each) for each, _ in failures}
    done = [each for each in objects if _key_of(each) not in failed]
    kept = sum(each.spec is None for each in done)
    manifests = tuple(each.manifest for each in done)
    left_out += len(objects) - len(done)
    origins = tuple(dict.fromkeys(each.place.rpartition(":")[0] for each in done))
    return Converted(files, len(done) - kept, kept, left_out, notes, "", manifests, origins)


def _join_verified(
    envs: Sequence[str], objects: Sequence[EnvironmentObject], kinds: Sequence[Kind]
) -> tuple[dict[str, str], list[Failure]]:
    """Return the files of what can be joined, and the objects that cannot, whose variants are left out everywhere."""
    failures: list[Failure] = []
    left = list(objects)
    while left:
        joined = join_environments(envs, left, kinds)
        new = joined.failures or list(_verify(joined.files, envs, left))
        if not new:
            return joined.files, failures
        failures += new
        failed = {_key_of(each) for each, _ in new}
        left = [each for each in left if _key_of(each) not in failed]
    return {}, failures


def _key_of(each: EnvironmentObject) -> tuple[str, str]:
    return each.kind, each.name


def _describe(env: str, each: ImportedManifest | SkippedManifest) -> EnvironmentObject:
    place = f"{each.location.file}:{each.location.line}"
    if isinstance(each, SkippedManifest):
        text, _ = clean_other(each)
        return EnvironmentObject(
            env, place, each.name, each.kind, f"{each.kind}-{each.name}".lower(), each.manifest, text, None
        )
    spec = each.spec
    kind = str(spec.manifest["kind"])
    if spec.is_spec:
        return EnvironmentObject(env, place, spec.name, kind, spec.name, spec.manifest, spec.text, spec)
    name = identity_of(spec.manifest).name
    return EnvironmentObject(env, place, name, kind, f"{kind}-{name}".lower(), spec.manifest, spec.text, None)


def _verify(files: Mapping[str, str], envs: Sequence[str], objects: Sequence[EnvironmentObject]) -> Iterator[Failure]:
    """Render the files; yield each object that is not rendered as it was."""
    with open_scratch() as scratch:
        write_files({scratch / path: text for path, text in files.items()}, scratch)
        done = render(scratch, environments=envs)
    if done.failed:
        error = next(finding for finding in done.findings if finding.severity is Severity.ERROR)
        of_file = [each for each in objects if error.location.file == f"jobs/{each.stem}.yaml"]
        yield from ((each, f"it cannot be rendered: {error.message}") for each in of_file or objects)
        return
    rendered: dict[tuple[str, Identity], dict[str, Plain]] = {}
    for each in done.objects:
        rendered[each.environment, each.identity] = remove_server_fields(dict(each.manifest))[0]
    wanted = {(one.env, identity_of(one.manifest)) for one in objects}
    # A Service beside a job was left out of its manifests.
    others = [key for key in rendered if key not in wanted and key[1].kind != "Service"]
    extra = {(identity.kind, identity.name): env for env, identity in others}
    for one in objects:
        identity = identity_of(one.manifest)
        env = extra.get((identity.kind, identity.name))
        if env is not None:
            yield one, f"it would also be rendered in `{env}`; rename it"
            continue
        found = rendered.get((one.env, identity_of(one.manifest)))
        if found is None or not is_equivalent(found, dict(one.manifest)):
            yield one, f"it would not be rendered as it is in `{one.env}`; rename it, or import `{one.env}` by itself"
