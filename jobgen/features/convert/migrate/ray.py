"""Migration steps to and from RayJobs: one command for the whole cluster, a head, and groups of workers."""

from __future__ import annotations

import re
import shlex
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.migrate.draft import Draft, get_at, pop_path, put_at
from jobgen.model.data import value_of

_PLATFORM = "ray"
_COMMAND = ("command", "args")
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# The role whose command runs once, in this order.
_LEADERS = ("head", "launcher", "master", "chief", "worker", "node")
_TRAINERS = {
    "deepspeed": "TorchTrainer",
    "jax": "JaxTrainer",
    "pytorch": "TorchTrainer",
    "tensorflow": "TensorflowTrainer",
    "xgboost": "XGBoostTrainer",
}


def leave_ray(draft: Draft) -> None:
    """Turn the entrypoint into a command and workers into nodes; there is no head."""
    if draft.source.platform != _PLATFORM or draft.target.platform == _PLATFORM:
        return
    spec = draft.spec
    text = get_at(spec, ("ray", "entrypoint"))
    if isinstance(text, str):
        pop_path(spec, ("ray", "entrypoint"))
        spec["command"] = ["sh", "-c", text]
        draft.note(("ray", "entrypoint"), "moved", "it is `command` now")
    # Move the variables of the runtime environment to those of the containers.
    path = ("ray", "runtimeEnv", "env_vars")
    variables, env = get_at(draft.spec, path), draft.spec.get("env") or {}
    if isinstance(variables, dict) and isinstance(env, dict) and all(isinstance(each, str) for each in env.values()):
        pop_path(draft.spec, path)
        draft.spec["env"] = {**env, **variables}
        draft.note(path, "moved", "they are in `env` now")
    own, known = spec.get("roles") or {}, draft.target.frameworks[draft.framework].roles
    if "head" not in known:
        # Every RayJob has one, also if its spec does not name it.
        own.pop("head", None)
        draft.note(
            ("roles", "head"), "lost", f"a {draft.target.name} has no head; the first pod coordinates the others"
        )
    if set(own) == {"worker"} and "master" in known and "node" not in known:
        # They are nodes, which are split into a master and workers because the other kind needs a master.
        own["node"] = own.pop("worker")
        draft.note(("roles", "worker"), "moved", "Ray has no master; all workers are nodes")
    if not own:
        spec.pop("roles", None)
    draft.note(("command",), "check", "there is no Ray cluster: the program cannot use Ray Train to start its workers")


def enter_ray(draft: Draft) -> None:
    """Use the command of one role for the whole cluster, and note what the program and the image need."""
    if draft.target.platform != _PLATFORM or draft.source.platform == _PLATFORM:
        return
    _join_commands(draft)
    _expand_variables(draft)
    # Keep the name of the main container if templates patch it: the containers of head and workers have two names.
    name = str(value_of(draft.source.container))
    templates = [holder.get("podTemplate") for _, holder in draft.holders()]
    patched = [each for template in templates for each in get_at(template, ("spec", "containers")) or ()]
    if "containerName" not in draft.spec and any(
        isinstance(each, dict) and each.get("name") == name for each in patched
    ):
        put_at(draft.spec, ("containerName",), name)
        draft.note(("containerName",), "changed", f"the main container of all pods is `{name}`, which templates patch")
    trainer = _TRAINERS.get(draft.framework, "")
    reason = "Ray runs it once, on the head, not on each node: the program must start its workers with Ray Train"
    draft.note(("command",), "check", f"{reason} (`{trainer}`)" if trainer else reason)
    draft.note(("image",), "check", "the image needs Ray; declare its version in `ray.version`")
    draft.note(("env",), "check", "no operator sets variables of the framework; Ray Train sets them for its workers")
    draft.note(
        ("roles", "head"), "check", "a head is added; set its `resources`, because those of all roles are not for it"
    )
    if get_at(draft.spec, ("runPolicy", "backoffLimit")) is not None:
        draft.note(("runPolicy", "backoffLimit"), "check", "each retry starts a new cluster")
    if get_at(draft.spec, ("runPolicy", "ttlSecondsAfterFinished")) is not None:
        draft.note(("runPolicy", "ttlSecondsAfterFinished"), "check", "it deletes the cluster and keeps the RayJob")


def _join_commands(draft: Draft) -> None:
    """Move the command of the leading role to the job; a RayJob has one."""
    own: dict[str, Any] = draft.spec.get("roles") or {}
    commands = {name: _find_command(draft.spec, role or {}) for name, role in own.items()}
    names = sorted(own, key=lambda name: _LEADERS.index(name) if name in _LEADERS else len(_LEADERS))
    leader = next((name for name in names if commands[name]), "")
    if not leader:
        return
    for name, role in own.items():
        for field in _COMMAND:
            if field not in (role or {}):
                continue
            value = role.pop(field)
            if value == commands[leader].get(field):
                draft.note(("roles", name, field), "moved", "it is the command of the job now")
            else:
                reason = f"a RayJob runs only the command of `{leader}`"
                draft.note(("roles", name, field), "lost", reason)
    for field in _COMMAND:
        value = commands[leader].get(field)
        if value is None and field in draft.spec:
            draft.drop((field,), f"a RayJob runs only the command of `{leader}`")
        elif value is not None and draft.spec.get(field) != value:
            if field in draft.spec:
                draft.note((field,), "lost", f"a RayJob runs only the command of `{leader}`")
            draft.spec[field] = value


def _find_command(spec: Fields, role: Fields) -> Fields:
    merged = {field: role.get(field, spec.get(field)) for field in _COMMAND}
    return {field: value for field, value in merged.items() if value}


def _expand_variables(draft: Draft) -> None:
    """Let a shell expand the variables of a command, because Kubernetes expands them in containers only."""
    words = [str(word) for field in _COMMAND for word in draft.spec.get(field) or ()]
    if not any(_VARIABLE.search(word) for word in words):
        return
    text = " ".join(map(_quote, words))
    draft.spec["command"] = ["sh", "-c", text]
    draft.spec.pop("args", None)
    for field in _COMMAND:
        draft.note((field,), "changed", "a shell expands its variables now; Kubernetes does so in containers only")


def _quote(word: str) -> str:
    """A word for a shell, with `$(A)` as `$A`."""
    parts = _VARIABLE.split(word)
    quoted = [f'"${{{part}}}"' if index % 2 else shlex.quote(part) for index, part in enumerate(parts) if part]
    return "".join(quoted) or "''"
