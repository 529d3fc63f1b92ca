"""What a migrated job does differently: the differences between its pods, each with the name by which users accept it.

A difference without a name is a fault of the migration. Nothing accepts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobgen.features.convert.migrate.compare_jobs import Rendered, compare_jobs
from jobgen.features.convert.migrate.draft import MigrationNote
from jobgen.features.convert.operators.compare import Numbers, PodDifference
from jobgen.features.convert.operators.create import create_pods
from jobgen.features.convert.operators.created import CreatedPod, as_items, find_container, get_fields, list_containers
from jobgen.features.convert.operators.jobset import INDEX_VARIABLE
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.shipped import read_data
from jobgen.spec.kinds import Kind

FIELDS, ROLES, NODES, ENV, RESTARTS = "lost-fields", "lost-roles", "identical-nodes", "operator-env", "restarts"
RAY, LAUNCHER, RUNTIME, OVERLAYS = "ray", "launcher", "runtime", "overlays"


def list_names() -> list[str]:
    """Return the names of the differences that users can accept."""
    return list(read_data("migrations.yaml")["differences"])


class NamedDifference(NamedTuple):
    """A difference between a job and the migrated one, and its name; empty if there is none."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} [{self.name}]" if self.name else self.text


def find_differences(before: Rendered, after: Rendered, notes: Iterable[MigrationNote]) -> list[NamedDifference]:
    """Compare the pods of a job before and after a migration, and name what differs."""
    pair = _Pair(before, after, tuple(note for note in notes if note.change == "lost"))
    roles = [str(note.field[1]) for note in pair.lost if _name_note(note) == ROLES]
    found = [
        NamedDifference(name, f"{format_difference(each)}{_describe_use(each, pair)}")
        for each in compare_jobs(before, after, roles)
        if (name := _find_name(each, pair)) is not None
    ]
    return list(dict.fromkeys((*_find_unknown_runtimes(before, after), *found)))


def _find_unknown_runtimes(before: Rendered, after: Rendered) -> Iterator[NamedDifference]:
    """Yield what cannot be compared: a TrainJob whose runtime is not in the repository, and not one of its release."""
    for side, when in ((before, "before"), (after, "after")):
        if side.kind.template is not None and not create_pods(side.object, side.runtimes, side.cluster):
            name = get_fields(side.object, "spec", "runtimeRef").get("name")
            release = side.cluster.find_version(side.kind.operator)
            place = f"{side.kind.operator} {release}" if release else side.kind.operator
            text = f"the runtime `{name}` {when} is not in runtimes/ and not one of {place}, so it is not compared"
            yield NamedDifference(RUNTIME, text)


def format_difference(difference: PodDifference) -> str:
    """A difference on one line."""
    before, after = (_format(value) for value in (difference.before, difference.after))
    return f"{difference.where}: {difference.field}: {before} before, {after} after"


_LONGEST = 160


def _format(value: Any) -> str:
    if isinstance(value, Numbers):
        return f"`{value.first}` to `{value.last}`"
    text = str(value)
    return "nothing" if value is None else f"`{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}`"


def name_lost_fields(notes: Iterable[MigrationNote]) -> Iterator[str]:
    """Yield the names of the differences that the notes on lost fields and roles stand for."""
    for note in notes:
        if note.change == "lost":
            yield _name_note(note)


def _name_note(note: MigrationNote) -> str:
    if note.field[0] == "ray" or note.field == ("roles", "head"):
        return RAY
    return ROLES if note.field[0] == "roles" and len(note.field) == 2 else FIELDS


# The names of differences.


class _Pair(NamedTuple):
    """Both sides of a migration."""

    before: Rendered
    after: Rendered
    lost: tuple[MigrationNote, ...]

    @property
    def is_ray(self) -> bool:
        """Return True if one side runs on a Ray cluster."""
        return "ray-job" in (self.before.kind.code, self.after.kind.code)

    @property
    def launches(self) -> bool:
        """Return True if one side has a launcher, or an operator that starts the processes itself."""
        return any(_launches(side.kind, side.framework) for side in (self.before, self.after))


_LAUNCHED = ("launched-job", "deepspeed-job")
"""The kinds whose operator starts the processes itself."""


def _launches(kind: Kind, framework: str) -> bool:
    if kind.code in _LAUNCHED:
        return True
    described = kind.frameworks.get(framework)
    return described is not None and any((role := kind.find_role(name)) and role.launches for name in described.roles)


_IRRELEVANT = frozenset(("name", "host"))
_MAY_DIFFER = frozenset(("ports", "restart", "retries", "processes", "nodes"))
"""What only matters if it changes the training."""
_COMMANDS = frozenset(("command", "args"))


def _find_name(difference: PodDifference, pair: _Pair) -> str | None:
    """Return the name of a difference; empty if it has none, and None if it changes nothing for the job."""
    kind = difference.kind
    if _is_needed_for_names(difference):
        return None
    if kind in _IRRELEVANT or (kind in _MAY_DIFFER and not difference.training):
        return None
    if kind == "retries" and pair.launches:
        # The limit is that of the launcher; its nodes are restarted without one.
        return None
    if kind == "world":
        return RAY if pair.is_ray else ENV if _is_read(difference, pair) else None
    is_command = difference.field.rpartition(" ")[2] in _COMMANDS
    if kind == "injected" and not (is_command and not pair.is_ray and _is_written(difference, pair)):
        return None
    if pair.is_ray and (
        kind in ("restart", "retries", "processes", "starts") or is_command or difference.where in ("head", "submitter")
    ):
        return RAY if kind != "entrypoint" else LAUNCHER if pair.launches else ""
    if kind in ("restart", "retries"):
        return RESTARTS
    return _explain(difference, pair, is_command=is_command)


def _is_needed_for_names(difference: PodDifference) -> bool:
    """Return True if a difference is the DNS policy with which pods in the network of their host find each other."""
    is_policy = difference.field.rpartition(" ")[2] == "dnsPolicy"
    return is_policy and (difference.before, difference.after) == (None, "ClusterFirstWithHostNet")


def _is_written(difference: PodDifference, pair: _Pair) -> bool:
    """Return True if users wrote a command that an operator replaces; otherwise both sides wait for a launcher."""
    for side in (pair.before, pair.after):
        for pod in create_pods(side.object, side.runtimes, side.cluster):
            written = find_container(get_fields(pod.template, "spec"), pod.main)
            is_meant = difference.where in ("all nodes", pod.role.lower()) or difference.where.startswith("rank")
            if is_meant and any(written.get(field) for field in _COMMANDS) and not _leads(side, pod):
                return True
    return False


def _leads(side: Rendered, pod: CreatedPod) -> bool:
    roles = [role for role in side.kind.roles.values() if role.launches]
    return pod.rank is None and any(pod.role.lower() in (role.name, str(role.spelling).lower()) for role in roles)


def _is_read(difference: PodDifference, pair: _Pair) -> bool:
    """Return True if a program may read a variable: the index of an Indexed Job is for those without a framework."""
    _, _, name = difference.field.rpartition(" ")
    return name != INDEX_VARIABLE or pair.before.framework == "generic" or _is_named(name, pair.before)


def _is_named(variable: str, side: Rendered) -> bool:
    """Return True if a command names a variable."""
    pods = create_pods(side.object, side.runtimes, side.cluster)
    containers = [container for pod in pods for container in list_containers(pod.spec)]
    pattern = re.compile(rf"\b{variable}\b")
    return any(pattern.search(str(container.get(field))) for container in containers for field in _COMMANDS)


def _describe_use(difference: PodDifference, pair: _Pair) -> str:
    """Return that the command reads a variable that nothing sets afterwards; empty if it does not."""
    variable = difference.field.rpartition(" ")[2]
    is_lost = difference.kind == "world" and difference.after is None and _is_named(variable, pair.after)
    return f"; the command reads `{variable}`, which is empty then" if is_lost else ""


def _explain(difference: PodDifference, pair: _Pair, *, is_command: bool) -> str:
    """Return the name of what explains a difference between what users wrote; empty if nothing does."""
    kind = difference.kind
    if any(_is_related(note, difference) for note in pair.lost):
        return FIELDS
    if kind == "nodes" and any(_name_note(note) == ROLES for note in pair.lost):
        return ROLES
    if _is_from_runtime(difference, pair):
        return RUNTIME
    if pair.after.kind.shape in ("one", "item") and difference.where not in ("all nodes", "job") and kind != "nodes":
        return NODES
    if any(_ANYTHING.intersection(note.field) for note in pair.lost):
        return FIELDS
    if kind == "files":
        return LAUNCHER if pair.launches else ""
    if pair.launches and _is_about_launch(difference, pair, is_command=is_command):
        return LAUNCHER
    return ENV if kind == "processes" else ""


def _is_about_launch(difference: PodDifference, pair: _Pair, *, is_command: bool) -> bool:
    """Return True if a difference is about who starts the processes, not about what runs on how many pods."""
    sides = pair.before, pair.after
    is_own = any(side.kind.code in _LAUNCHED or side.kind.template is not None for side in sides)
    if is_command:
        return is_own or difference.kind == "injected"
    if difference.kind != "nodes":
        return difference.kind == "processes"
    counts = [sum(pod.count for pod in create_pods(side.object, side.runtimes, side.cluster)) for side in sides]
    return counts[0] == counts[1] or any(side.kind.template is not None for side in sides)


_RELATED: Mapping[str, frozenset[str]] = {
    "args": frozenset(("command", "args")),
    "command": frozenset(("command", "args", "mpi", "deepspeed")),
    "env": frozenset(("env", "envFrom", "secrets", "configs")),
    "envFrom": frozenset(("envFrom", "secrets", "configs")),
    "image": frozenset(("image",)),
    "injected": frozenset(("command", "args", "mpi", "deepspeed")),
    "initContainers": frozenset(("initContainers", "sidecars")),
    "containers": frozenset(("sidecars",)),
    "metadata": frozenset(("labels", "annotations")),
    "mounts": frozenset(("volumes", "shm", "secrets", "configs", "volcano")),
    "nodes": frozenset(("pytorch", "minReplicas", "maxReplicas")),
    "processes": frozenset(("pytorch", "mpi", "deepspeed")),
    "resources": frozenset(("resources",)),
    "volumes": frozenset(("volumes", "shm", "secrets", "configs", "volcano")),
}
"""The fields of a spec that decide about a part of a pod. Other parts have the name of their field."""
_ANYTHING = frozenset(("podTemplate", "manifest"))
"""Fields that can set any part of a pod."""


def _is_related(note: MigrationNote, difference: PodDifference) -> bool:
    """Return True if a lost field can be the reason of a difference."""
    steps = note.field[2:] if note.field[0] == "roles" else note.field
    if not steps:
        return False
    field = difference.field.rpartition(" ")[2]
    related = _RELATED.get(difference.kind) or _RELATED.get(field, frozenset((field,)))
    alias = {"serviceAccount": "serviceAccountName", "priority": "priorityClassName"}
    return not related.isdisjoint((steps[0], alias.get(str(steps[0]), "")))


def _is_from_runtime(difference: PodDifference, pair: _Pair) -> bool:
    """Return True if the side of Trainer has a value that its runtime sets, or if the runtime is unknown."""
    for side, value in ((pair.before, difference.before), (pair.after, difference.after)):
        if side.kind.template is None or side.runtimes:
            continue
        if difference.where not in ("all nodes", "job") and not difference.where.startswith("rank"):
            # A launcher is a pod of the runtime; the fields of a job are for nodes.
            return True
        spec = get_fields(side.object, "spec")
        bare = {**side.object, "spec": {"runtimeRef": spec.get("runtimeRef")}}
        pods = create_pods(bare, side.runtimes, side.cluster)
        field = difference.field.rpartition(" ")[2]
        values = [found for pod in pods for found in _list_values(pod, field)]
        if not pods or (value is not None and value in values):
            return True
    return False


def _list_values(pod: CreatedPod, field: str) -> Iterator[Any]:
    """Yield the values of a field in a pod and in its containers."""
    yield pod.spec.get(field)
    for container in list_containers(pod.spec):
        yield container.get(field)
        yield [*as_items(container.get("command")), *as_items(container.get("args"))]


class Verdict(NamedTuple):
    """What a migrated job does differently, and whether that was accepted."""

    differences: tuple[NamedDifference, ...] = ()
    needed: frozenset[str] = frozenset()
    """The names of all differences; an empty one stands for those that no name accepts."""
    accepted: frozenset[str] = frozenset()

    @property
    def is_refused(self) -> bool:
        """Return True if the job must not be migrated."""
        return not self.needed <= self.accepted

    @property
    def advice(self) -> str:
        """Why the job was not migrated, and what to do."""
        if "" in self.needed:
            return "it would do something else, and no option accepts that; migrate it by hand"
        missing = [name for name in list_names() if name in self.needed - self.accepted]
        options = " ".join(f"--accept {name}" for name in missing)
        return f"it would not do the same; if you mean that, add `{options}`"


def judge(differences: Iterable[NamedDifference], notes: Iterable[MigrationNote], accepted: Iterable[str]) -> Verdict:
    """Compare what a migrated job does differently with what users accept."""
    found = tuple(dict.fromkeys(differences))
    needed = frozenset((*(each.name for each in found), *name_lost_fields(notes)))
    return Verdict(found, needed, frozenset(accepted))
