"""Roles from one kind to another: their names, what all nodes share, and what happens when a pod ends."""

from __future__ import annotations

from jobgen.convert.migrate.draft import Draft, pop, put, say_of_all
from jobgen.convert.migrate.tables import EXIT_CODES, ROLES
from jobgen.model.data import Data, untraced, value_of


def roles(draft: Draft) -> None:
    """Roles by their names on the other side; those it does not have are lost."""
    key = (draft.source.platform, draft.target.platform, draft.framework)
    known = draft.target.frameworks[draft.framework].roles
    own = draft.spec.get("roles") or {}
    renamed: dict[str, Data] = {}
    for name, role in own.items():
        other = ROLES.get(key, {}).get(name, name)
        if other != name and other in own:
            draft.say(("roles", name), "lost", f"it would be `{other}` there, and there is one already")
        elif other in known:
            renamed[other] = role
            if other != name:
                draft.say(("roles", name), "moved", f"the role is `{other}` there")
        else:
            draft.say(("roles", name), "lost", f"{draft.target.name} has no role `{name}`")
    if own:
        draft.spec["roles"] = renamed
        if not renamed:
            del draft.spec["roles"]
    if draft.source.frameworks.get(draft.framework) and not own:
        _single(draft)


def _single(draft: Draft) -> None:
    """A job without roles has the one that its kind gives it; say it if the other kind would give it another."""
    before = draft.source.frameworks[draft.framework].single
    after = draft.target.frameworks[draft.framework].single
    if before != after and "node" not in (before, after):
        if before in draft.target.frameworks[draft.framework].roles:
            draft.spec["roles"] = {before: {}}
        else:
            draft.say(("roles",), "changed", f"the only role is `{after}` and not `{before}`")


def nodes(draft: Draft) -> None:
    """Nodes that are all alike become the roles of a kind that tells them apart."""
    known = draft.target.frameworks[draft.framework].roles
    own = draft.spec.get("roles") or {}
    if draft.source.shape != "one" or draft.target.shape == "one":
        return
    if not set(own) <= {"node"}:
        _fold_nodes(draft, own)
        return
    role = dict(own.get("node") or {})
    count = role.pop("replicas", None) or 1
    draft.spec.pop("roles", None)
    for field, value in role.items():
        say_of_all(draft, ("roles", "node"), field, value)
    worker: dict[str, Data] = {"replicas": count}
    if "launcher" in known:
        launcher = {key: draft.spec.pop(key) for key in ("command", "args") if key in draft.spec}
        made: dict[str, Data] = {"launcher": launcher, "worker": worker}
    elif "master" in known:
        made = {"master": {}, "worker": {"replicas": count - 1}} if count > 1 else {"master": {}}
    else:
        made = {"worker": worker}
    draft.spec["roles"] = made
    listed = " and ".join(f"`{name}`" for name in made)
    draft.say(("roles", "node"), "moved", f"the nodes are {listed} there")
    for key in ("command", "args"):
        if key in made.get("launcher", {}):
            draft.say((key,), "moved", "the launcher runs it there")


def _fold_nodes(draft: Draft, own: dict[str, Data]) -> None:
    """Nodes beside other roles are workers: all of them are alike in their kind."""
    if "node" not in own:
        return
    node, worker = dict(own.pop("node") or {}), own.get("worker")
    if worker is None:
        own["worker"] = node
    else:
        worker["replicas"] = (worker.get("replicas") or 1) + (node.get("replicas") or 1)
        draft.say(("roles", "worker", "replicas"), "changed", "the nodes are workers, too")
    draft.say(("roles", "node"), "moved", "the nodes are `worker` there")


def alike(draft: Draft) -> None:
    """Roles that differ become nodes that do not: the workers' words hold for all, the others' are lost."""
    own = draft.spec.get("roles") or {}
    if draft.target.shape != "one" or not own:
        return
    keeper = next((name for name in ("worker", "node", "master") if name in own), "")
    kept = own.get(keeper) or {}
    for name, role in own.items():
        launches = draft.target.roles[name].launches
        for field, value in list((role or {}).items()):
            path = ("roles", name, field)
            if field == "replicas" or (launches and field in ("command", "args")):
                continue
            if name == keeper:
                _hoist(draft, name, field, value)
            elif value != kept.get(field, draft.spec.get(field)):
                draft.lose(path, f"all nodes of a {draft.target.name} are alike, and `{keeper}` speaks for them")
            else:
                pop(draft.spec, path)
                draft.say(path, "moved", "it is said of all nodes")
    launcher = next((name for name in own if draft.target.roles[name].launches), "")
    for field in ("command", "args"):
        if launcher and keeper and field in (own.get(launcher) or {}) and field in draft.spec:
            draft.lose((field,), "the launcher's is the one that a TrainJob has")


def _hoist(draft: Draft, name: str, field: str, value: Data) -> None:
    """A role's word as the job's."""
    pop(draft.spec, ("roles", name, field))
    launched = any(draft.target.roles[other].launches for other in draft.spec.get("roles", {}))
    if launched and field in ("command", "args"):
        draft.say(("roles", name, field), "lost", "nodes run what the launcher starts")
        return
    say_of_all(draft, ("roles", name), field, value)


def restarts(draft: Draft) -> None:
    """Restart policies: written where the defaults differ, changed where the other kind does not know one."""
    if draft.target.shape == "one":
        for path, holder in list(draft.holders()):
            if holder.get("restartPolicy") is not None or "restartPolicy" in holder:
                draft.lose((*path, "restartPolicy"))
        return
    for path, holder in list(draft.holders()):
        policy = holder.get("restartPolicy")
        where = (*path, "restartPolicy")
        if policy is not None and draft.target.restart_policies and policy not in draft.target.restart_policies:
            holder["restartPolicy"] = "OnFailure"
            known = " and ".join(f"`{name}`" for name in draft.target.restart_policies)
            draft.say(where, "changed", f"{draft.target.name} takes {known}, not `{policy}`; it is `OnFailure` now")
        elif policy == "ExitCode" and draft.source.platform != draft.target.platform:
            draft.say(where, "check", EXIT_CODES)
    _default_restarts(draft)


def _default_restarts(draft: Draft) -> None:
    """Where nobody has written a policy, the operators' own may differ; then it is written."""
    framework = draft.target.frameworks[draft.framework]
    names = list(draft.spec.get("roles") or {}) or [framework.single]
    required = [name for name in framework.roles if draft.target.roles[name].required and name not in names]
    if "restartPolicy" in draft.spec or draft.source.shape == "one":
        return
    wanted: dict[str, str] = {}
    for name in (*names, *required):
        role = (draft.spec.get("roles") or {}).get(name) or {}
        before, after = _default(draft, draft.source, name), _default(draft, draft.target, name)
        known = not draft.target.restart_policies or before in draft.target.restart_policies
        if "restartPolicy" not in role and before and before != after and known:
            wanted[name] = before
    for_all = len(wanted) == len(names) + len(required) and len(set(wanted.values())) == 1
    for name, before in wanted.items():
        where = ("restartPolicy",) if for_all else ("roles", name, "restartPolicy")
        put(draft.spec, where, before)
        why = f"{draft.source.name} takes `{before}` where nothing is written, and now it is written"
        draft.say(where, "changed", why)


def _default(draft: Draft, kind: Data, name: str) -> str:
    framework = kind.frameworks.get(draft.framework) or next(iter(kind.frameworks.values()))
    written = untraced(framework.defaults).get("restartPolicy", "")
    role = kind.roles.get(name)
    return str(written or (role.restart_default if role else "") or kind.restart_default)


def totals(draft: Draft) -> None:
    """The declared total, if the roles have changed."""
    declared = draft.spec.get("replicas")
    if declared is None:
        return
    own = draft.spec.get("roles") or {draft.target.frameworks[draft.framework].single: {}}
    names = [
        name
        for name in draft.target.frameworks[draft.framework].roles
        if name in own or draft.target.roles[name].required
    ]
    counts = [(own.get(name) or {}).get("replicas", value_of(draft.target.roles[name].replicas)) for name in names]
    total = sum(count for count in counts if isinstance(count, int))
    if total != declared:
        draft.spec["replicas"] = total
        draft.say(("replicas",), "changed", f"the roles make {total} there")
