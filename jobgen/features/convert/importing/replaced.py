"""Find the objects of files that an import would replace, and that its new files do not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jobgen.model.data import Plain
from jobgen.model.finding import Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import identity_of, split_list
from jobgen.yamlio.read import Source, read

_SCALAR = "not-a-mapping"
"""The finding of a document that is text or a list, which is not an object."""


class Loss(NamedTuple):
    """A file that would lose objects."""

    path: Path
    objects: tuple[Identity, ...]
    line: int = 0
    """Where the text cannot be read, so that its objects are not known."""

    def explain(self, shown: str) -> str:
        """Return why the file is not replaced, and what to do instead."""
        if self.line:
            reason = "cannot be read, so it is not known which objects `--force` would delete"
            return f"{shown}:{self.line}: the text {reason}; correct it, or delete the file"
        listed = ", ".join(f"{each.kind or 'the object'} `{each.name}`" for each in self.objects)
        advice = "move what you need to another file, or import to another folder"
        return f"{shown}: `--force` would also delete {listed}; {advice}"


def find_losses(files: Mapping[Path, str], imported: Iterable[Mapping[str, Plain]]) -> Iterator[Loss]:
    """Yield each existing file with objects that neither the new files nor the imported manifests have.

    What is imported as a spec may replace the manifest that it was.
    """
    texts = (text.encode("utf-8", "surrogateescape") for text in files.values())
    kept = [*(each for text in texts for each in _list_objects(read(text, ""))), *map(identity_of, imported)]
    for path in files:
        if path.is_file():
            source = read(path.read_bytes(), "")
            line = next((each.location.line for each in source.findings if each.rule != _SCALAR), 0)
            lost = tuple(each for each in _list_objects(source) if not _keep(each, kept))
            if lost or line:
                yield Loss(path, lost, line)


def _list_objects(source: Source) -> Iterator[Identity]:
    for document in source.documents:
        yield from (identity_of(each) for each in split_list(document.data) if isinstance(each, dict))


def _keep(old: Identity, kept: list[Identity]) -> bool:
    """Return True if an object is kept; each that is kept stands for one."""
    found = next((each for each in kept if _is_same(old, each)), None)
    if found is not None:
        kept.remove(found)
    return found is not None


def _is_same(one: Identity, other: Identity) -> bool:
    groups = {each.api_version.rpartition("/")[0] for each in (one, other)}
    namespaces = {each.namespace for each in (one, other)} - {""}
    return len(groups) == 1 and (one.kind, one.name) == (other.kind, other.name) and len(namespaces) < 2
