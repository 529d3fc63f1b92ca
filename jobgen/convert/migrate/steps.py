"""From one kind to another, step by step: each changes the draft and accounts for what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobgen.convert.migrate.draft import Draft, Path, at, iter_leaves, pop, put, say_of_all
from jobgen.convert.migrate.roles import alike, nodes, restarts, roles, totals
from jobgen.convert.migrate.tables import MANAGERS, MEANINGS, MOVES, NEAREST_RUNTIME, RESERVED
from jobgen.model.data import Data, untraced, value_of
from jobgen.spec.kinds import FieldMapping, Kind
from jobgen.spec.normalize import is_job_field


def moves(draft: Draft) -> None:
    """Fields that have another name on the other side."""
    for source, target in MOVES.get((draft.source.platform, draft.target.platform), ()):
        old, new = tuple(source.split(".")), tuple(target.split("."))
        value = at(draft.spec, old)
        if value is None or at(draft.spec, new) is not None:
            continue
        pop(draft.spec, old)
        put(draft.spec, new, value)
        draft.say(old, "moved", f"it is `{target}` there")
        if new[:2] == ("pytorch", "elastic") and at(draft.spec, ("pytorch", "elastic", "enabled")) is None:
            put(draft.spec, ("pytorch", "elastic", "enabled"), True)


def unsaid(draft: Draft) -> None:
    """Nulls that leave a word to the operator: another operator may take another, so it is written."""
    for path, holder in list(draft.holders()):
        role = draft.source.roles.get(path[-1]) if path else None
        if role and "replicas" in holder and holder["replicas"] is None:
            holder["replicas"] = role.omitted
            draft.say(
                (*path, "replicas"), "changed", f"{draft.source.name} takes {role.omitted} where nothing is written"
            )
        if "restartPolicy" in holder and holder["restartPolicy"] is None:
            policy = (role.restart_default if role else "") or draft.source.restart_default
            del holder["restartPolicy"]
            if policy:
                holder["restartPolicy"] = policy
            word = f"`{policy}`" if policy else "what it likes"
            draft.say((*path, "restartPolicy"), "changed", f"{draft.source.name} takes {word} where nothing is written")


def managers(draft: Draft) -> None:
    """A job that names its controller names the new one."""
    path = ("runPolicy", "managedBy")
    value = at(draft.spec, path)
    if value in MANAGERS.values() and draft.target.platform in MANAGERS and value != MANAGERS[draft.target.platform]:
        put(draft.spec, path, MANAGERS[draft.target.platform])
        draft.say(path, "changed", f"the controller there is `{MANAGERS[draft.target.platform]}`")


def fields(draft: Draft) -> None:
    """Fields of the job that the other kind has no place for."""
    own = {
        key: value for key, value in draft.spec.items() if is_job_field(key) and key not in ("framework", "replicas")
    }
    for path, value in list(_fields(own, draft.target)):
        place = _place(path, draft.target)
        if value is None and place is not None:
            continue
        if place is None:
            draft.lose(path)
        elif place.values is not None and value not in place.values:
            draft.lose(path, f"{draft.target.name} takes {', '.join(f'`{word}`' for word in place.values)}")
        elif not _is_sort(value, place.as_type, path):
            draft.lose(path)
    if draft.spec.get("queue") and draft.source.platform != draft.target.platform:
        draft.say(("queue",), "check", "it names a queue; see that the other platform has one of that name")


def _fields(fields: dict[str, Data], kind: Kind, path: Path = ()) -> Iterator[tuple[Path, Data]]:
    """Our fields, each as deep as the kind has a place for it."""
    for key, value in fields.items():
        here = (*path, key)
        deeper = ".".join(here) in kind.branches or _place(here, kind) is None
        if isinstance(value, dict) and value and deeper:
            yield from _fields(value, kind, here)
        else:
            yield here, value


def _place(path: Path, kind: Kind) -> FieldMapping | None:
    """The place that a kind has for a field: its own, or one in the block that holds it."""
    own, holder = kind.fields.get(".".join(path)), kind.fields.get(".".join(path[:-1]))
    return own or (FieldMapping((*holder.at, path[-1])) if holder else None)


def _is_sort(value: Data, as_type: str, path: Path) -> bool:
    """Whether a value can be what the other kind takes in a field."""
    if as_type == "int":
        return str(value).isdigit()
    return path != ("priority",) or isinstance(value, str)


def runtime(draft: Draft) -> None:
    """A TrainJob of a framework without a runtime of its own names one."""
    path = (draft.framework, "runtime")
    if draft.source.shape == "one" != draft.target.shape and not any("image" in each for _, each in draft.holders()):
        draft.say(("image",), "check", "it came from the runtime; write it in the job")
    if draft.target.shape != "one" or at(draft.spec, path) is not None:
        return
    if ".".join(path) in draft.target.fields and not untraced(draft.target.frameworks[draft.framework].defaults):
        nearest = NEAREST_RUNTIME.get(draft.framework, "")
        put(draft.spec, path, nearest)
        why = f"no runtime for plain {draft.framework} is shipped; `{nearest}` is the nearest: name your own"
        draft.say(path, "check", why)


def manifest(draft: Draft) -> None:
    """What was merged into the old custom resource has no meaning in the new one, but for its metadata."""
    block = draft.spec.get("manifest")
    for path, _ in list(iter_leaves(block)) if isinstance(block, dict) else ():
        if path and path[0] != "metadata":
            why = f"it is merged into a {draft.source.name}; say it for {draft.target.name} anew"
            draft.lose(("manifest", *path), why)


def environment(draft: Draft) -> None:
    """Variables that belong to the other operator."""
    refused: tuple[str, ...] = ()
    named = draft.target.requirements.runtimes.get(str(at(draft.spec, (draft.framework, "runtime")) or ""))
    default = at(untraced(draft.target.frameworks[draft.framework].defaults), (draft.framework, "runtime"))
    known = named or draft.target.requirements.runtimes.get(str(default or ""))
    if known:
        refused = draft.target.requirements.reserved.get(known.policy, ())
    for path, holder in list(draft.holders()):
        env = holder.get("env")
        names = list(env) if isinstance(env, dict) else [item.get("name") for item in env or ()]
        for name in names:
            if name in refused:
                _without_variable(draft, (*path, "env"), str(name))
            elif name in RESERVED.get(draft.target.name, ()):
                draft.say((*path, "env", str(name)), "check", "the operator sets this variable itself")


def _without_variable(draft: Draft, path: Path, name: str) -> None:
    env = at(draft.spec, path)
    if isinstance(env, list):
        put(draft.spec, path, [item for item in env if item.get("name") != name])
    else:
        pop(draft.spec, (*path, name))
    draft.say((*path, name), "lost", "the operator sets this variable and lets nobody else set it")


def meanings(draft: Draft) -> None:
    """What changes although no field says so."""
    names = (f"{draft.source.platform} {draft.source.name}", f"{draft.target.platform} {draft.target.name}")
    for field, why in MEANINGS.get(names, ()):
        draft.say(tuple(field.split(".")), "check", why)


def main_container(draft: Draft) -> None:
    """Templates that speak of the main container call it as the other kind does."""
    old, new = str(value_of(draft.source.container)), str(value_of(draft.target.container))
    for path, holder in list(draft.holders()):
        named = holder.get("containerName")
        if named is not None and draft.target.requirements.container and named != new:
            draft.lose((*path, "containerName"), f"the main container of a {draft.target.name} must be `{new}`")
            _rename(draft, (*path, "podTemplate"), str(named), new)
        elif old != new and "{job}" not in (old, new):
            _rename(draft, (*path, "podTemplate"), old, new)


def _rename(draft: Draft, path: Path, old: str, new: str) -> None:
    containers = at(draft.spec, (*path, "spec", "containers"))
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, dict) and container.get("name") == old:
            container["name"] = new
            draft.say((*path, "spec", "containers"), "changed", f"the main container is `{new}` there, not `{old}`")


# Where each of our fields ends up in a pod template.
_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "serviceAccount": (("pod", "serviceAccountName"),),
    "volumes": (("pod", "volumes"), ("container", "volumeMounts")),
    "shm": (("pod", "volumes"), ("container", "volumeMounts")),
    "securityContext": (("pod", "securityContext"), ("container", "securityContext")),
    "labels": (("metadata", "labels"),),
    "annotations": (("metadata", "annotations"),),
    **{name: (("pod", name),) for name in ("nodeSelector", "tolerations", "affinity", "imagePullSecrets")},
    **{name: (("container", name),) for name in ("imagePullPolicy", "workingDir", "envFrom", "ports")},
    **{name: (("container", name),) for name in ("image", "command", "args", "env", "resources")},
}
_KEPT = frozenset(("roles", "manifest", "podTemplate", "containerName", "replicas", "restartPolicy"))


def parts(draft: Draft) -> None:
    """Fields of pods that can only be said in a runtime."""
    if draft.target.template is None:
        return
    for path, holder in list(draft.holders()):
        for field in list(holder):
            if is_job_field(field) or field in _KEPT:
                continue
            if not all(_takes(draft, *part) for part in _PARTS.get(field, (("", ""),))):
                draft.lose((*path, field))
        if "containerName" in holder:
            draft.lose((*path, "containerName"))
        if isinstance(holder.get("podTemplate"), dict):
            _template(draft, (*path, "podTemplate"), holder["podTemplate"])


def _takes(draft: Draft, part: str, name: str) -> bool:
    template = draft.target.template
    assert template is not None, "asked by parts"
    shape = template.shapes[-1]
    if part == "metadata":
        return shape.metadata is not None
    return name in (shape.pod_fields if part == "pod" else {*template.container, *shape.container_fields})


def _template(draft: Draft, path: Path, template: dict[str, Data]) -> None:
    for key in list(template):
        spec = template[key]
        if key == "metadata" and _takes(draft, "metadata", key):
            continue
        if key != "spec" or not isinstance(spec, dict):
            draft.lose((*path, key))
            continue
        for field in list(spec):
            if field != "containers" and not _takes(draft, "pod", field):
                draft.lose((*path, key, field))
        if "containers" in spec:
            draft.lose((*path, key, "containers"), "only the runtime's template can say more of containers")


def skeleton(draft: Draft) -> None:
    """Workers become the nodes of one process group; schedulers and servers have nothing to do there."""
    spec = draft.spec
    draft.say(("framework",), "changed", "MXNet is archived, and its operator is gone since 1.9; it is `pytorch` now")
    spec["framework"] = draft.framework = "pytorch"
    if "mxnet" in spec:
        draft.lose(("mxnet",), "PyTorch has no such setting")
    if "ports" in spec:
        draft.lose(("ports",), "the operator adds the port of torch.distributed itself")
    own: dict[str, Data] = spec.pop("roles", None) or {}
    worker = dict(own.get("worker") or {})
    for name in own:
        if name != "worker":
            draft.say(("roles", name), "lost", "gradients are exchanged among the workers: there is no such role")
    count = worker.pop("replicas", None) or 1
    for field, value in worker.items():
        if field == "ports":
            draft.say(("roles", "worker", field), "lost", "the operator adds the port of torch.distributed itself")
        else:
            say_of_all(draft, ("roles", "worker"), field, value)
    if count > 1:
        draft.spec["roles"] = {"master": {}, "worker": {"replicas": count - 1}}
        draft.say(("roles", "worker"), "changed", "the first worker is the master")
    elif own:
        draft.say(("roles", "worker"), "moved", "the only node is the master")
    for field, why in MEANINGS["kubeflow MXJob", "PyTorch"]:
        draft.say(tuple(field.split(".")), "check", why)


STEPS: tuple[Callable[[Draft], None], ...] = (
    moves,
    unsaid,
    managers,
    nodes,
    roles,
    alike,
    restarts,
    main_container,
    parts,
    fields,
    runtime,
    manifest,
    environment,
    totals,
    meanings,
)
