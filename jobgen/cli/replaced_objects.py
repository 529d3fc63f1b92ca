"""Find the objects of files that a command would replace, and that its new files do not have."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.model.finding import Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import identity_of, split_list
from jobgen.repo.files import MANIFEST_SUFFIXES
from jobgen.reports.escape import visible
from jobgen.yamlio.read import Source, read

_SCALAR = "not-a-mapping"
"""The finding of a document that is text or a list, which is not an object."""


class Loss(NamedTuple):
    """A file that would lose objects."""

    path: Path
    objects: tuple[tuple[Identity, int], ...]
    """The objects, each with its line."""
    line: int = 0
    """Where the text cannot be read, so that its objects are not known."""

    def explain(self, shown: str) -> str:
        """Return why the file is not replaced, and what to do instead."""
        if self.line:
            reason = "cannot be read, so it is not known which objects `--force` would delete"
            return f"{shown}:{self.line}: the text {reason}; correct it, or delete the file"
        listed = ", ".join(f"{each.kind or 'object'} `{each.name}` (line {line})" for each, line in self.objects)
        advice = "move what you need to another file, or write to another folder"
        return f"{shown}: `--force` would also delete {listed}; {advice}"


def refuse_losses(
    files: Mapping[Path, str], directory: Path, kept: Iterable[Identity] = (), kinds: Collection[str] = ()
) -> Result | None:
    """Return an error if the files would replace others with more objects, else None; see `find_losses`."""
    losses = list(find_losses(files, kept, kinds))
    lines = (each.explain(os.path.relpath(each.path, directory).replace(os.sep, "/")) for each in losses)
    listed = "".join(f"{visible(line)}\n" for line in lines)
    message = "nothing was written, because objects would be lost"
    return error_result(ExitCode.ERRORS, message, listed) if losses else None


def find_losses(
    files: Mapping[Path, str], kept: Iterable[Identity] = (), kinds: Collection[str] = ()
) -> Iterator[Loss]:
    """Yield each existing file with objects that the new files do not have.

    Objects that are `kept` in another form, as an imported manifest is in a spec, are not lost. Nor is one that becomes
    another of `kinds`, as a job that is migrated does.
    """
    texts = (text.encode("utf-8", "surrogateescape") for text in files.values())
    rest = [*(each for text in texts for each, _ in _list_objects(read(text, ""))), *kept]
    for path in files:
        if path.suffix in MANIFEST_SUFFIXES and path.is_file():
            source = read(path.read_bytes(), "")
            line = next((each.location.line for each in source.findings if each.rule != _SCALAR), 0)
            lost = tuple((each, at) for each, at in _list_objects(source) if not _keep(each, rest, kinds))
            if lost or line:
                yield Loss(path, lost, line)


def _list_objects(source: Source) -> Iterator[tuple[Identity, int]]:
    for document in source.documents:
        objects = split_list(document.data) if isinstance(document.data, dict) else ()
        found = (each for each in objects if isinstance(each, dict) and not {"kind", "metadata"}.isdisjoint(each))
        yield from ((identity_of(each), document.location.line) for each in found)


def _keep(old: Identity, rest: list[Identity], kinds: Collection[str]) -> bool:
    """Return True if an object is kept; each of the rest stands for one."""
    found = next((each for each in rest if _is_same(old, each, kinds)), None)
    if found is not None:
        rest.remove(found)
    return found is not None


def _is_same(one: Identity, other: Identity, kinds: Collection[str]) -> bool:
    groups = {each.api_version.rpartition("/")[0] for each in (one, other)}
    namespaces = {each.namespace for each in (one, other)} - {""}
    is_kind = (len(groups) == 1 and one.kind == other.kind) or {one.kind, other.kind} <= set(kinds)
    return is_kind and one.name == other.name and len(namespaces) < 2
