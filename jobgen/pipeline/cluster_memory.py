"""Keep what the rules about the state of a cluster found in files, for the next run in the same process.

The state decides about all files, so an edit that changes it concerns all of them. Most edits do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobgen.model.data import untraced
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.result_cache import digest_files

if TYPE_CHECKING:
    from jobgen.check.cluster.names import Name
    from jobgen.check.cluster.quotas import Use
    from jobgen.check.cluster.state import ClusterState
    from jobgen.model.data import Node
    from jobgen.model.finding import Finding, Identity
    from jobgen.pipeline.file_result import FileResult
    from jobgen.pipeline.trace import Tracer
    from jobgen.repo.files import File

Objects = Sequence["Mapping[str, Node]"]


class Member(NamedTuple):
    """An object of an environment: its identity, its file, and its place there."""

    identity: Identity
    path: str
    position: int
    item: int
    companion: int = 0
    is_queued: bool = False
    """Whether Kueue decides when its pods start."""


class Checked(NamedTuple):
    """What was found in the objects of one file, and what each takes from the quotas of its namespace."""

    findings: list[Finding]
    uses: list[tuple[Member, list[Use]]]


class StateSources(NamedTuple):
    """What the state of a cluster is built from."""

    exported: Objects
    own: tuple[Objects, ...]
    """The objects of each file of the repository that has some."""
    names: tuple[Name, ...]
    """The names of objects that others refer to."""
    rules: tuple[str, ...]
    """The rules that the state is used by."""

    def is_same(self, other: StateSources) -> bool:
        """Whether both have the same objects, so that locations are the same, too."""
        return (
            self.exported is other.exported
            and len(self.own) == len(other.own)
            and all(one is its for one, its in zip(self.own, other.own, strict=True))
            and (self.names, self.rules) == (other.names, other.rules)
        )


class KnownState:
    """The state of a cluster, and what it was built from."""

    def __init__(self, sources: StateSources, state: ClusterState) -> None:
        self.sources = sources
        self.state = state

    @cached_property
    def content(self) -> str:
        """What decides about objects: the sources without locations. Equal text means equal types, too."""
        sources = self.sources
        objects = [[untraced(dict(obj)) for obj in several] for several in (sources.exported, *sources.own)]
        return repr((self.state.cluster, objects, sources.names, sources.rules))


class _CheckedFile(NamedTuple):
    result: FileResult
    """The result of the file: if it is another object, the file or a layer has changed."""
    state: KnownState
    checked: Checked


class ClusterMemory:
    """What the last runs in this process found in the cluster of one environment."""

    def __init__(self) -> None:
        self._tracer: Tracer | None = None
        self._exported: tuple[bytes, Objects, Sequence[Finding]] = (b"", (), ())
        self._objects: dict[str, tuple[FileResult, frozenset[Any], Objects]] = {}
        """The objects of files that decide about others, with locations."""
        self._states: dict[tuple[str, ...], KnownState] = {}
        self._files: dict[str, _CheckedFile] = {}
        self._used: set[tuple[str, ...]] = set()
        """The states of this run."""

    def start(self, tracer: Tracer) -> None:
        """Start a run. With another tracer, objects and findings may have other locations."""
        self._used = set()
        if tracer is not self._tracer:
            self._tracer, self._objects, self._states = tracer, {}, {}
            self._exported = (b"", (), ())

    def read_exported(
        self, files: Sequence[File], read: Callable[[], tuple[Objects, Sequence[Finding]]]
    ) -> tuple[Objects, Sequence[Finding]]:
        """Return the exported objects and what is wrong with them; read them if their files have changed."""
        digest = digest_files(files)
        if self._exported[0] != digest:
            self._exported = digest, *read()
        return self._exported[1:]

    def trace(
        self, path: str, result: FileResult | None, places: frozenset[Any], trace: Callable[[], Iterator[Any]]
    ) -> Objects:
        """Return objects of a file with locations; the same as before if the file has the same result."""
        known = self._objects.get(path)
        if known and known[0] is result and known[1] == places:
            return known[2]
        found = tuple(trace())
        if result is not None:
            self._objects[path] = result, places, found
        return found

    def build_state(
        self, paths: tuple[str, ...], sources: StateSources, build: Callable[[], ClusterState]
    ) -> KnownState:
        """Return the state that files decide about; the same as before if it has the same sources."""
        self._used.add(paths)
        known = self._states.get(paths)
        if known is None or not known.sources.is_same(sources):
            known = self._states[paths] = KnownState(sources, build())
        return known

    def find(self, path: str, result: FileResult | None, state: KnownState) -> Checked | None:
        """Return what was found in a file; None if it is not known, or may be something else now."""
        known = self._files.get(path)
        if known is None or known.result is not result:
            return None
        if known.state is not state:
            # Findings may refer to locations in the state or in overlays.
            if known.checked.findings or known.state.content != state.content:
                return None
            self._files[path] = known._replace(state=state)
        return known.checked

    def note(self, path: str, result: FileResult | None, state: KnownState, checked: Checked) -> None:
        """Note what was found in a file."""
        if result is not None:
            self._files[path] = _CheckedFile(result, state, checked)

    def forget_others(self) -> None:
        """Forget what does not belong to the states of this run."""
        self._states = {key: state for key, state in self._states.items() if key in self._used}
        states = set(map(id, self._states.values()))
        self._files = {path: file for path, file in self._files.items() if id(file.state) in states}
