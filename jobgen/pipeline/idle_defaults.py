"""Find defaults of overlays that no job takes, because all jobs set the same fields themselves.

Each job says which values of which blocks it overrides; a value that all jobs of a block override has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from jobgen.model.data import Location, location_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.expand import DefaultUse
from jobgen.rendering.locate import locate
from jobgen.rendering.trace import Tracer
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import LIST_KEYS
from jobgen.spec.normalize import Layer, RoleFields
from jobgen.spec.overlay import Defaults, Environment, list_ancestors

ValuePath: TypeAlias = tuple[str, ...]
"""Where a layer has a value: `job`, or a role or an empty name and `replica` or `pod`; then the keys."""

_JOB = "job"
# Fields that other fields stand for, or that are merged by other rules than the rest.
_UNCOMPARED = frozenset(("framework", "platform", "suspend"))


class DefaultBlock(NamedTuple):
    """A block of defaults of an overlay, with its values."""

    overlay: str
    number: int
    values: tuple[tuple[ValuePath, Any], ...]


def _number(defaults: Iterable[Defaults]) -> Iterator[tuple[Defaults, int]]:
    """The blocks of overlays, with their places there."""
    count: dict[str, int] = {}
    for each in defaults:
        if each.overlay:
            number = count[each.overlay] = count.get(each.overlay, -1) + 1
            yield each, number


def _list_values(layer: Layer) -> Iterator[tuple[ValuePath, Any]]:
    yield from _walk((_JOB,), {key: value for key, value in layer.job.items() if key not in _UNCOMPARED})
    for name, fields in (("", layer.common), *layer.roles.items()):
        if fields is not None:
            yield from _walk((name, "replica"), fields.replica)
            yield from _walk((name, "pod"), fields.pod)


def _walk(path: ValuePath, tree: Any) -> Iterator[tuple[ValuePath, Any]]:
    """The values of a mapping. Lists whose items are merged, and deletions, are no values that a job overrides."""
    for key, value in tree.items():
        if isinstance(value, dict) and not any(name.startswith("$") for name in value):
            yield from _walk((*path, key), value)
        elif not isinstance(value, dict) and value is not None and key not in LIST_KEYS:
            yield (*path, key), value


class DefaultUses:
    """Finds the defaults of the overlays of an environment that jobs override."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._blocks: dict[int, list[DefaultBlock]] = {}

    def __call__(
        self, below: Sequence[Layer], layers: Sequence[Layer], roles: Sequence[str], kind: Kind
    ) -> list[DefaultUse]:
        """Return what a job overrides: the first of its layers is its own, the others are patches.

        A value that a patch sets too is none of these: the overlays override it anyway.
        """
        blocks = self._blocks.get(id(below))
        if blocks is None:
            # Jobs with the same defaults share the list of their layers, which lives as long as the environment.
            blocks = self._blocks[id(below)] = list(self._list_blocks(below))
        own, *patches = layers
        uses = []
        for block in blocks:
            found = [path for path, value in block.values if _overrides(own, path, value, roles, kind)]
            for patch in patches if found else ():
                found = [path for path in found if not _overrides(patch, path, None, roles, kind)]
            uses.append((block.overlay, block.number, tuple(found)))
        return uses

    def _list_blocks(self, layers: Sequence[Layer]) -> Iterator[DefaultBlock]:
        for each, number in _number(self._environment.defaults):
            if any(each.layer is layer for layer in layers):
                yield DefaultBlock(each.overlay, number, tuple(_list_values(each.layer)))


def _overrides(layer: Layer, path: ValuePath, value: Any, roles: Iterable[str], kind: Kind) -> bool:
    """Return True if a layer sets a field to another value, in all roles that the field is for."""
    holder, *keys = path
    if holder == _JOB:
        return _differs(layer.job, keys, value)
    side = keys.pop(0)
    if _differs(_side(layer.common, side), keys, value):
        return True
    found = False
    for name in ([holder] if holder else roles) if layer.roles else ():
        described, fields = kind.find_role(name), layer.roles.get(name)
        if described is not None and keys[0] in described.ignores:
            continue
        if fields is None or not _differs(_side(fields, side), keys, value):
            return False
        found = True
    return found


def _side(fields: RoleFields, side: str) -> dict[str, Any]:
    return fields.pod if side == "pod" else fields.replica


def _differs(tree: Any, keys: Sequence[str], value: Any) -> bool:
    """Return True if a mapping has another value at a path; a deletion is meant as such."""
    for key in keys:
        if type(tree) is not dict or key not in tree:
            return False
        tree = tree[key]
    return tree is not None and type(tree) is not dict and bool(tree != value)


def find_idle_defaults(
    project: ProjectConfig, ran: Sequence[str], uses: Iterable[DefaultUse], tracer: Tracer
) -> Iterator[Finding]:
    """Report defaults that all jobs of an overlay override; of an overlay some of whose environments did not run, none.

    In the overlay of an environment they look as if they had an effect there. In one that others extend they may be
    for jobs to come: that is said once two jobs have no use for them.
    """
    common: dict[tuple[str, int], tuple[int, frozenset[ValuePath]]] = {}
    for use in uses:
        *_, overridden = use
        number, paths = common.get(use[:2], (0, frozenset(overridden)))
        common[use[:2]] = number + 1, paths.intersection(overridden)
    idle = {key: (number, paths) for key, (number, paths) in common.items() if paths}
    if not idle:
        return
    environments = {name: list_ancestors(name, project.overlays) for name in project.environments()}
    for (overlay, place), (number, paths) in sorted(idle.items()):
        having = [name for name, ancestors in environments.items() if overlay in ancestors]
        is_leaf = overlay in environments
        if not having or not set(having) <= set(ran) or not (is_leaf or number > len(having)):
            continue
        environment = tracer.traced_project().environment(having[0], [])
        block = next(each for each, at in _number(environment.defaults) if (each.overlay, at) == (overlay, place))
        found: dict[Location, tuple[Any, str]] = {}
        for path, value in _list_values(block.layer):
            location = location_of(value)
            if path in paths and location is not None:
                found.setdefault(location, (value, _show(path, environment.cluster.gpu_resource)))
        if not found:
            continue
        nodes, names = zip(*(found[each] for each in sorted(found)), strict=True)
        fields = list(dict.fromkeys(names))
        shown = ", ".join(f"`{name}`" for name in fields[:-1]) + (" and " if fields[1:] else "") + f"`{fields[-1]}`"
        who = "the job" if number == 1 else "every job" if block.match is None else "every job that matches"
        subject = "these defaults have" if fields[1:] else "this default has"
        message = Sentence(
            "{} sets {} itself, so {} no effect; move {} to `patches`, in a `merge`, to override jobs",
            who,
            shown,
            subject,
            "them" if fields[1:] else "it",
        )
        severity = Severity.WARNING if is_leaf else Severity.INFO
        yield locate(Problem("overridden-value", message, nodes[0], severity=severity), f"overlays/{overlay}")


def _show(path: ValuePath, gpu_resource: str) -> str:
    """Return how a user writes the field at a path."""
    holder, *keys = path
    if holder != _JOB:
        keys = keys[1:] if not holder else ["roles", holder, *keys[1:]]
    if "resources" in keys:
        keys = ["gpu" if key == gpu_resource else key for key in keys if key not in ("limits", "requests")]
    if "env" in keys:
        keys = keys[: keys.index("env") + 2]
    return ".".join(keys)
