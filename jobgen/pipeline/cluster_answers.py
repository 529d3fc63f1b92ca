"""Keep what the rules about the state of a cluster found in files, as answers of the store.

The state decides about all files, so an edit that changes it concerns all of them. Most edits do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from jobgen.engine.inputs import Read, digest_bytes
from jobgen.engine.store import Query
from jobgen.model.data import untraced
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.result_inputs import digest_files, name_entry
from jobgen.render.run_state import RunState

if TYPE_CHECKING:
    from jobgen.check.cluster.names import Name
    from jobgen.check.cluster.quotas import Use
    from jobgen.check.cluster.state import ClusterState
    from jobgen.model.data import Node
    from jobgen.model.finding import Finding, Identity
    from jobgen.repo.files import File, FileEntry

Value = TypeVar("Value")
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


class KnownState:
    """The state of a cluster, and what it was built from."""

    _numbers = count()

    def __init__(self, sources: StateSources, state: ClusterState) -> None:
        self.number = next(self._numbers)
        self.sources = sources
        self.state = state

    @cached_property
    def content(self) -> str:
        """What decides about objects: the sources without locations. Equal text means equal types, too."""
        sources = self.sources
        objects = [[untraced(dict(obj)) for obj in several] for several in (sources.exported, *sources.own)]
        return repr((self.state.cluster, objects, sources.names, sources.rules))

    @cached_property
    def digest(self) -> str:
        """The digest of the content."""
        return digest_bytes(self.content.encode("utf-8", "surrogatepass"))


class ClusterAnswers:
    """What was found with the state of the cluster of one environment, as answers of the store of a run."""

    def __init__(self, run: RunState, env: str) -> None:
        self._run = run
        self._env = env
        self._number = 1 + [runner.name for runner in run.runners].index(env)

    @property
    def is_used(self) -> bool:
        """Return True if answers of earlier runs are used. A shard does not keep the results of other shards' files."""
        return self._run.store is not None and bool(self._run.project.layers) and self._run.shard is None

    def read_exported(
        self, files: Sequence[File], read: Callable[[], tuple[Objects, Sequence[Finding]]]
    ) -> tuple[Objects, Sequence[Finding]]:
        """Return the exported objects and what is wrong with them; read them if their files have changed."""
        return self._remember(_EXPORTED, "", self._run.project.layers, digest_files(files), compute=read)

    def trace(self, entry: FileEntry, places: frozenset[Any], trace: Callable[[], Iterator[Any]]) -> Objects:
        """Return objects of a file with locations."""
        version = self._find_version(entry), self._run.project.layers, sorted(map(repr, places))
        return self._remember(_TRACED, entry.path, *version, compute=lambda: tuple(trace()))

    def build_state(
        self, paths: tuple[str, ...], sources: StateSources, build: Callable[[], ClusterState]
    ) -> KnownState:
        """Return the state that files decide about."""
        identity = [*map(id, (sources.exported, *sources.own)), sources.names, sources.rules]
        return self._remember(_STATE, repr(paths), *identity, compute=lambda: KnownState(sources, build()))

    def find(self, entry: FileEntry, state: KnownState) -> Checked | None:
        """Return what was found in a file; None if it is not known, or may be something else now."""
        if not self.is_used:
            return None
        assert self._run.store is not None
        row = self._run.store.find(_CLUSTER, self._make_key(entry.path), partial(self._holds, entry, state))
        return row.value if row is not None else None

    def note(self, entry: FileEntry, state: KnownState, checked: Checked) -> None:
        """Note what was found in a file. Findings may be located in the state and in layers."""
        if not self.is_used:
            return
        names = ("result", "state", *(("place",) if checked.findings else ()))
        reads = [(name, "", self._look(name, entry, state)) for name in names]
        assert self._run.store is not None
        self._run.store.add(_CLUSTER, self._make_key(entry.path), reads, checked)

    def _holds(self, entry: FileEntry, state: KnownState, read: Read) -> bool:
        return self._look(read[0], entry, state) == read[2]

    def _look(self, name: str, entry: FileEntry, state: KnownState) -> str:
        if name == "result":
            return self._find_version(entry)
        return state.digest if name == "state" else f"{self._run.project.layers} {state.number}"

    def _find_version(self, entry: FileEntry) -> str:
        return self._run.answers[name_entry(entry)].versions[self._number]

    def _make_key(self, name: str) -> str:
        return f"{self._run.scope} {self._env} {name}"

    def _remember(self, query: Query[Value], name: str, *parts: object, compute: Callable[[], Value]) -> Value:
        if not self.is_used:
            return compute()
        assert self._run.store is not None
        digest = digest_bytes(repr(parts).encode("utf-8", "surrogatepass"))
        return self._run.store.remember(query, self._make_key(name), digest, compute)


_EXPORTED: Query[tuple[Objects, Sequence[Finding]]] = Query("exported")
_TRACED: Query[Objects] = Query("traced")
_STATE: Query[KnownState] = Query("state")
_CLUSTER: Query[Checked] = Query("cluster")
