"""Migration steps for roles: names, fields that all nodes share, replicas, restart policies, and the head of Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.convert.importing.comments import KeyPath
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import Draft, pop_path, put_at
from jobgen.features.convert.migrate.ray_commands import to_shell_command
from jobgen.features.convert.migrate.totals import default_count
from jobgen.model.data import untraced, value_of
from jobgen.repo.shipped import read_data
from jobgen.spec.kinds import ANY_ROLE, Kind
from jobgen.spec.replicas import get_at

EXIT_CODES = "exit codes that restart a pod differ: 128 and above for Kubeflow; 130, 137, 138 and 143 for TensorStack"


def _find_names(draft: Draft) -> Mapping[str, str]:
    """Return the roles with another name on the target platform."""
    by_target = read_data("migrations.yaml")["roles"].get(draft.source.platform, {})
    names: Mapping[str, str] = by_target.get(draft.target.platform, {}).get(draft.framework, {})
    return names


def rename_roles(draft: Draft) -> None:
    """Rename roles for the target; roles that it does not have are lost."""
    names = _find_names(draft)
    known = draft.target.frameworks[draft.framework].roles
    own = draft.spec.get("roles") or {}
    renamed: Fields = {}
    for name, role in own.items():
        other = names.get(name, name)
        if other != name and other in own:
            draft.note(("roles", name), "lost", f"it would be renamed to `{other}`, which already exists")
        elif other in known or ANY_ROLE in known:
            renamed[other] = role
            if other != name:
                draft.note(("roles", name), "moved", f"the role is called `{other}` now")
        else:
            draft.note(("roles", name), "lost", f"{draft.target.name} has no role `{name}`")
    if own:
        draft.spec["roles"] = renamed
        if not renamed:
            del draft.spec["roles"]
    if draft.source.frameworks.get(draft.framework) and not own:
        # A job without roles has the single role of its kind; write it if the target's single role is another one.
        before = draft.source.frameworks[draft.framework].single
        after = draft.target.frameworks[draft.framework].single
        if before != after and "node" not in (before, after):
            if before in draft.target.frameworks[draft.framework].roles:
                draft.spec["roles"] = {before: {}}
            else:
                draft.note(("roles",), "changed", f"the only role is `{after}` now, not `{before}`")


def write_required_roles(draft: Draft) -> None:
    """Write a role that every job of the source has, if the target does not require it: it has a pod."""
    described = draft.source.frameworks.get(draft.framework)
    own: Fields = draft.spec.get("roles") or ({described.single: {}} if described else {})
    for name in described.roles if described else ():
        role, other = draft.source.find_role(name), draft.target.find_role(name)
        if role and role.required and not role.at and name not in own and not (other and other.required):
            draft.spec["roles"] = own = {name: {}, **own}
            draft.note(("roles", name), "changed", f"every {draft.source.name} has it; it is written out now")


def fill_required_roles(draft: Draft) -> None:
    """Make the first worker the role that the target requires and the source did not have, so that no pod is added."""
    own: Fields = draft.spec.get("roles") or {}
    described = draft.source.frameworks.get(draft.framework)
    if not own and described and described.single == "worker":
        own = {"worker": {}}
    for name in draft.target.frameworks[draft.framework].roles if "worker" in own else ():
        role, old = draft.target.find_role(name), draft.source.find_role(name)
        if role is None or not role.required or role.launches or role.at or name in own or (old and old.required):
            continue
        worker: Fields = dict(own["worker"] or {})
        count = worker.pop("replicas", None)
        left = (default_count(draft.source, "worker") if count is None else count) - 1
        workers = {"worker": {**worker, "replicas": left}} if left > 0 else {}
        draft.spec["roles"] = own = {name: worker, **{key: own[key] for key in own if key != "worker"}, **workers}
        draft.note(("roles", "worker"), "changed", f"every {draft.target.name} has a `{name}`; the first worker is it")


def split_nodes(draft: Draft) -> None:
    """Turn identical nodes into the roles of a kind that has several."""
    known = draft.target.frameworks[draft.framework].roles
    own = draft.spec.get("roles") or {}
    described = draft.source.frameworks.get(draft.framework)
    if described is None or "node" not in described.roles or "node" in known or ANY_ROLE in known:
        return
    if not set(own) <= {"node"}:
        _add_nodes_to_workers(draft, own)
        return
    role = dict(own.get("node") or {})
    count = role.pop("replicas", None) or 1
    draft.spec.pop("roles", None)
    for field, value in role.items():
        draft.move_to_job(("roles", "node"), field, value)
    worker: Fields = {"replicas": count}
    if "launcher" in known:
        launcher: Fields = {key: draft.spec.pop(key) for key in ("command", "args") if key in draft.spec}
        roles: dict[str, Fields] = {"launcher": launcher, "worker": worker}
    elif "master" in known and draft.framework != "tensorflow":
        roles = {"master": {}, "worker": {"replicas": count - 1}} if count > 1 else {"master": {}}
    else:
        roles = {"worker": worker}
    draft.spec["roles"] = roles
    names = " and ".join(f"`{name}`" for name in roles)
    draft.note(("roles", "node"), "moved", f"the nodes are {names} now")
    for key in ("command", "args"):
        if key in roles.get("launcher", {}):
            draft.note((key,), "moved", "the launcher runs it now")


def _add_nodes_to_workers(draft: Draft, own: Fields) -> None:
    """Nodes beside other roles become workers. In a kind with a template for each role, their pods may differ."""
    if "node" not in own:
        return
    node, worker = dict(own.pop("node") or {}), own.get("worker")
    if worker is None:
        own["worker"] = node
    else:
        worker["replicas"] = (worker.get("replicas") or 1) + (node.get("replicas") or 1)
        draft.note(("roles", "worker", "replicas"), "changed", "the nodes are also workers now")
        if {**worker, "replicas": 0} != {**node, "replicas": 0}:
            reason = f"{draft.target.name} has no such role, and the pods of `worker`, which replace its pods, differ"
            draft.note(("roles", "node"), "lost", reason)
            return
    draft.note(("roles", "node"), "moved", "the nodes are called `worker` now")


def join_roles(draft: Draft) -> None:
    """Turn roles into identical nodes: the workers' fields apply to all nodes, other fields are lost."""
    own = draft.spec.get("roles") or {}
    if draft.target.shape not in ("one", "item") or not own:
        return
    runtime = draft.surroundings.runtime
    if runtime and runtime.roles_differ:
        _keep_master(draft, own)
        return
    main = next((name for name in ("worker", "node", "master") if name in own), "")
    main_fields = own.get(main) or {}
    for name, role in own.items():
        launches = draft.target.roles[name].launches
        for field, value in list((role or {}).items()):
            path = ("roles", name, field)
            if field == "replicas" or (launches and field in ("command", "args")):
                continue
            if name == main:
                _move_to_job(draft, name, field, value)
            elif value != main_fields.get(field, draft.spec.get(field)):
                draft.drop(path, f"all nodes of a {draft.target.name} are identical, and the value of `{main}` is used")
            else:
                pop_path(draft.spec, path)
                draft.note(path, "moved", "it applies to all nodes now")
    launcher = next((name for name in own if draft.target.roles[name].launches), "")
    for field in ("command", "args"):
        if launcher and main and field in (own.get(launcher) or {}) and field in draft.spec:
            draft.drop((field,), "a TrainJob runs the launcher's instead")


def drop_replica_fields(draft: Draft) -> None:
    """Drop bounds of replicas that the target kind does not have, and patches for the items of the source kind."""
    for path, holder in list(draft.holders()):
        if path and "manifest" in holder and draft.source is not draft.target:
            reason = f"it patches a role of a {draft.source.name}; write a new patch for {draft.target.name}"
            draft.drop((*path, "manifest"), reason)
    for field, at in (("minReplicas", draft.target.replicas.least), ("maxReplicas", draft.target.replicas.most)):
        for path, holder in list(draft.holders()):
            if path and field in holder and not at:
                draft.drop((*path, field), f"the number of pods of a {draft.target.name} is fixed")


def _keep_master(draft: Draft, own: Fields) -> None:
    """Turn the master into the only node; the runtime has the workers."""
    for field, value in (own.get("master") or {}).items():
        if field != "replicas":
            draft.move_to_job(("roles", "master"), field, value, "the only node of the TrainJob is the master")
    del draft.spec["roles"]
    draft.note(("roles", "master"), "moved", "it is the only node of the TrainJob")


def _move_to_job(draft: Draft, name: str, field: str, value: Any) -> None:
    pop_path(draft.spec, ("roles", name, field))
    has_launcher = any(draft.target.roles[other].launches for other in draft.spec.get("roles", {}))
    if has_launcher and field in ("command", "args"):
        draft.note(("roles", name, field), "lost", "nodes run what the launcher starts")
        return
    draft.move_to_job(("roles", name), field, value)


def convert_restart_policies(draft: Draft) -> None:
    """Write restart policies where the defaults differ, and replace those that the target does not support."""
    if draft.target.platform == "ray" != draft.source.platform:
        _drop_restart_policies(draft)
        return
    if draft.target.shape == "one":
        _drop_restart_policies(draft)
        if draft.surroundings.runtime:
            return
        for overlaid in sorted(set(draft.surroundings.policies.values())):
            reason = f"overlay `{draft.surroundings.env}` sets `{overlaid}`; set it in the template of the runtime"
            draft.note(("restartPolicy",), "lost", reason)
        return
    _write_overlay_policies(draft)
    supported = draft.target.restart_policies
    for path, holder in list(draft.holders()):
        policy = holder.get("restartPolicy")
        where = (*path, "restartPolicy")
        if policy is not None and supported and policy not in supported:
            holder["restartPolicy"] = "OnFailure"
            names = " and ".join(f"`{name}`" for name in supported)
            draft.note(where, "changed", f"{draft.target.name} supports {names}, not `{policy}`; it is `OnFailure` now")
        elif policy == "ExitCode" and (draft.source.platform == "tensorstack") != (
            draft.target.platform == "tensorstack"
        ):
            draft.note(where, "check", EXIT_CODES)
    _write_default_restart_policies(draft)


def _drop_restart_policies(draft: Draft) -> None:
    for path, holder in list(draft.holders()):
        if "restartPolicy" in holder:
            draft.drop((*path, "restartPolicy"))


def _write_overlay_policies(draft: Draft) -> None:
    """Write the policies that an overlay of today's environment sets, because it does not apply to the other one."""
    env, policies = draft.surroundings.env, dict(draft.surroundings.policies)
    names = _find_names(draft)
    roles = draft.spec.get("roles") or {}
    for name, policy in policies.items():
        role = names.get(name, name)
        alone = len(set(policies.values())) == 1 and (
            not roles or {names.get(each, each) for each in policies} >= roles.keys()
        )
        where = ("restartPolicy",) if alone or role not in roles else ("roles", role, "restartPolicy")
        if alone:
            for each in roles.values():
                (each or {}).pop("restartPolicy", None)
        put_at(draft.spec, where, policy)
        draft.note(where, "changed", f"overlay `{env}` sets `{policy}`; it is written out now")


def _write_default_restart_policies(draft: Draft) -> None:
    """Write the default policy of the source where the spec has none and the target's default differs."""
    framework = draft.target.frameworks[draft.framework]
    names = list(draft.spec.get("roles") or {}) or [framework.single]
    required = [name for name in framework.roles if draft.target.roles[name].required and name not in names]
    if "restartPolicy" in draft.spec or draft.source.shape == "one":
        return
    wanted: dict[str, str] = {}
    for name in (*names, *required):
        role = (draft.spec.get("roles") or {}).get(name) or {}
        before, after = _default_policy(draft, draft.source, name), _default_policy(draft, draft.target, name)
        is_supported = not draft.target.restart_policies or before in draft.target.restart_policies
        if "restartPolicy" not in role and before and before != after and is_supported:
            wanted[name] = before
    applies_to_all = len(wanted) == len(names) + len(required) and len(set(wanted.values())) == 1
    for name, before in wanted.items():
        where = ("restartPolicy",) if applies_to_all else ("roles", name, "restartPolicy")
        put_at(draft.spec, where, before)
        draft.note(where, "changed", f"the default of {draft.source.name} is `{before}`; it is written out now")


def _default_policy(draft: Draft, kind: Kind, name: str) -> str:
    framework = kind.frameworks.get(draft.framework) or next(iter(kind.frameworks.values()))
    described = untraced(framework.defaults).get("restartPolicy", "")
    role = kind.roles.get(name)
    return str(described or (role.restart_default if role else "") or kind.restart_default)


_LAUNCHED = "launched-job"


def write_launch_commands(draft: Draft) -> None:
    """Write the command that other kinds run, and what kinds with a launcher of their own keep when they end."""
    if draft.source.code != draft.target.code:
        if draft.source.code == _LAUNCHED and draft.framework == "mpi":
            _write_mpi_command(draft)
        elif draft.source.code == "deepspeed-job":
            _write_deepspeed_command(draft)
    policy = ("runPolicy", "cleanPodPolicy")
    if draft.target.code == _LAUNCHED and get_at(draft.spec, policy) == "All":
        put_at(draft.spec, policy, "Running")
        draft.note(policy, "changed", "the launcher is never deleted; it is `Running` now")


def _write_mpi_command(draft: Draft) -> None:
    script, options = get_at(draft.spec, ("mpi", "script")), get_at(draft.spec, ("mpi", "extraArgs"))
    mca, home = get_at(draft.spec, ("mpi", "mca")), get_at(draft.spec, ("mpi", "home"))
    if not isinstance(script, list):
        return
    words: list[Any] = ["mpirun", *(["--prefix", home] if home else [])]
    for name, value in mca.items() if isinstance(mca, dict) else ():
        words += ["-mca", name, value]
    words += [*(options if isinstance(options, list) else []), *script]
    fields = (("mpi", "script"), ("mpi", "extraArgs"), ("mpi", "mca"), ("mpi", "home"))
    _move_to_command(draft, ("roles", "launcher", "command"), words, fields)


def _write_deepspeed_command(draft: Draft) -> None:
    run = get_at(draft.spec, ("deepspeed", "config", "run"))
    for form, start in (("python", ["torchrun"]), ("module", ["torchrun", "-m"]), ("exec", [])):
        words = run.get(form) if isinstance(run, dict) else None
        if isinstance(words, list):
            _move_to_command(draft, ("command",), [*start, *words], (("deepspeed", "config", "run"),))
            draft.note(("command",), "check", "every pod runs it; DeepSpeedJob started it from its first worker")
            return


def _move_to_command(draft: Draft, path: KeyPath, words: list[Any], fields: tuple[KeyPath, ...]) -> None:
    put_at(draft.spec, path, [str(word) for word in words])
    for field in fields:
        if get_at(draft.spec, field) is not None:
            pop_path(draft.spec, field)
            draft.note(field, "moved", f"it is in `{'.'.join(path)}` now")


_PLATFORM = "ray"
_COMMAND = ("command", "args")
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
    if to_shell_command(words) == words:
        return
    draft.spec["command"] = to_shell_command(words)
    draft.spec.pop("args", None)
    for field in _COMMAND:
        draft.note((field,), "changed", "a shell expands its variables now; Kubernetes does so in containers only")
