"""The RayJob of KubeRay: the command becomes its entrypoint, and containers run what KubeRay sets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, ValidFields, join_values, list_scalars, untraced, value_of, with_value
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import find_main_container, set_path, take_command, with_main_container
from jobgen.rendering.pod import to_text
from jobgen.spec.replicas import get_at
from jobgen.yamlio.write import sort_keys, to_yaml

_WORKER = "worker"
HEAD = "head"
_WORKER = "worker"
_ELASTIC = "kueue.x-k8s.io/elastic-job"
_SUBMITTER = "ray-job-submitter"
_EXPANDED = lazy_pattern(r"\$\([A-Za-z_][-A-Za-z0-9_.]*\)")


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, problems: list[Problem]) -> ValidFields:
    """Set the entrypoint, the autoscaler and the submitter; return the templates without commands."""
    spec = resource["spec"]
    commands = {name: take_command(template)[0] for name, template in templates.items()}
    bare = dict(templates)
    for name, template in templates.items():
        # `podTemplate` may have replaced the container by anything.
        if container := find_main_container(template):
            kept = {key: value for key, value in container.items() if key not in ("command", "args")}
            bare[name] = with_main_container(template, kept)
    problems.extend(_set_entrypoint(commands, spec))
    for field, write in (("runtimeEnvYAML", to_yaml), ("entrypointResources", json.dumps)):
        if isinstance(spec.get(field), dict):
            leaves = list(list_scalars(sort_keys(spec[field]) if write is to_yaml else spec[field]))
            text = write(untraced(spec[field]))
            spec[field] = join_values(leaves, text) if leaves else _like(spec[field], text)
    _set_autoscaling(job, resource)
    if isinstance(get_at(spec, ("deletionStrategy", "deletionRules")), list):
        # KubeRay refuses both, and the rules say more.
        spec.pop("shutdownAfterJobFinishes", None)
    if isinstance(spec.get("submitterPodTemplate"), dict):
        spec["submitterPodTemplate"] = _complete_submitter(spec["submitterPodTemplate"], bare.get(HEAD), job)
    problems.extend(_check_start_params(job))
    problems.extend(_check_group_names(job))
    if spec.get("clusterSelector"):
        # The cluster is not that of this job.
        spec.pop("shutdownAfterJobFinishes", None)
        problems.extend(_find_unused_fields(job, bare, spec))
        return {}
    return bare


def complete_item(job: JobSpec, name: str, item: dict[str, Any]) -> None:
    """Set the parameters of `ray start`, and the bounds of a group of workers."""
    settings = job.fields.get("ray")
    params = get_at(settings, ("startParams", name)) if isinstance(settings, dict) else None
    written = {key: to_text(value) for key, value in params.items()} if isinstance(params, dict) else {}
    if name == HEAD and len(job.roles) > 1:
        resources = find_main_container(item.get("template") or {}).get("resources")
        amounts = resources.values() if isinstance(resources, dict) else ()
        if not any("cpu" in each for each in amounts if isinstance(each, dict)):
            # Without a limit, Ray would use all CPUs of the node for tasks.
            written.setdefault("num-cpus", "0")
    item["rayStartParams"] = written
    count, least, most = (value_of(item.get(field)) for field in ("replicas", "minReplicas", "maxReplicas"))
    if name == HEAD or type(count) is not int:
        return
    # Kueue counts `replicas`, and KubeRay starts as many as the bounds allow. Both are the same number.
    if type(least) is int and count < least:
        item["replicas"] = item["minReplicas"]
    if type(most) is int and value_of(item["replicas"]) > most:
        item["replicas"] = item["maxReplicas"]
    # Without a bound, the CRD allows any number of workers.
    item.setdefault("minReplicas", item["replicas"])
    item.setdefault("maxReplicas", item["replicas"])


def _set_entrypoint(commands: dict[str, list[Node]], spec: dict[str, Any]) -> Iterator[Problem]:
    """Set the command of the head, or else of a worker, as the entrypoint; there is one for all roles."""
    written = [name for name, command in commands.items() if command]
    if not written:
        return
    first = HEAD if HEAD in written else written[0]
    command = commands[first]
    if "entrypoint" in spec:
        message = Sentence(
            "`ray.entrypoint` is set, and so is `command` or `args`; a RayJob runs one command, so remove one"
        )
        yield Problem("unsupported-by-kind", message, spec["entrypoint"])
        return
    for name in written:
        if list(map(value_of, commands[name])) != list(map(value_of, command)):
            message = Sentence(
                "a RayJob runs one command, but those of `{}` and `{}` differ; make them equal", first, name
            )
            yield Problem("unsupported-by-kind", message, commands[name][0])
    words = [str(value_of(node)) for node in command]
    for word, node in zip(words, command, strict=True):
        found = _EXPANDED.search(word)
        if found:
            shell = f"`[sh, -c, …]` with `${found[0][2:-1]}`"
            message = Sentence("Kubernetes does not expand `{}` in the command of a RayJob; write {}", found[0], shell)
            yield Problem("unsupported-by-kind", message, node)
    spec["entrypoint"] = join_values(command, shlex.join(words))


def _set_autoscaling(job: JobSpec, resource: dict[str, Any]) -> None:
    """Enable the autoscaler, and let Kueue admit the pods that it adds."""
    cluster = resource["spec"].get("rayClusterSpec")
    options = cluster.get("autoscalerOptions") if isinstance(cluster, dict) else None
    if options is None:
        return
    if not isinstance(options, dict) or not options:
        del cluster["autoscalerOptions"]
    if value_of(options) is False:
        return
    enabled = _like(options, True) if isinstance(options, dict) else options
    cluster["enableInTreeAutoscaling"] = enabled
    annotations = resource["metadata"].get("annotations")
    if "queue" in job.fields and _ELASTIC not in (annotations or {}):
        set_path(resource, ("metadata", "annotations", _ELASTIC), with_value(enabled, "true"))


def _complete_submitter(template: dict[str, Any], head: Any, job: JobSpec) -> dict[str, Any]:
    """The template of the submitter with what Kubernetes requires: a container, its image, a restart policy."""
    spec = template.get("spec")
    spec = dict(spec) if isinstance(spec, dict) else {}
    containers = spec.get("containers")
    first, *rest = containers if isinstance(containers, list) and containers else [{}]
    if isinstance(first, dict):
        image = find_main_container(head or {}).get("image")
        defaults = {"name": _SUBMITTER, **({} if image is None else {"image": image})}
        spec["containers"] = [{**defaults, **first}, *rest]
    spec.setdefault("restartPolicy", _like(template, "Never"))
    if "priority" in job.fields:
        spec.setdefault("priorityClassName", job.fields["priority"])
    return {**template, "spec": spec}


def _check_start_params(job: JobSpec) -> Iterator[Problem]:
    settings = job.fields.get("ray")
    params = settings.get("startParams") if isinstance(settings, dict) else None
    for name, written in params.items() if isinstance(params, dict) else ():
        below = written.values() if isinstance(written, dict) else ()
        if not isinstance(written, dict):
            message = Sentence("`ray.startParams.{}` must be a mapping, such as `{{num-gpus: 8}}`", name)
            yield Problem("wrong-type", message, name)
        elif any(isinstance(value, (dict, list)) for value in below):
            yield Problem(
                "wrong-type", Sentence("the parameters of `ray.startParams.{}` must be text or numbers", name), name
            )
        if name not in job.roles:
            listed = ", ".join(f"`{role}`" for role in job.roles)
            message = Sentence(
                "`ray.startParams` has parameters for `{}`, but the job has {}; use one of these", name, listed
            )
            yield Problem("unknown-role", message, name)


def _check_group_names(job: JobSpec) -> Iterator[Problem]:
    """Report a group of workers whose name has the letters of `worker` in another order: Ray takes any name."""
    for name in job.roles:
        if name != _WORKER and len(name) == len(_WORKER) and sorted(name) == sorted(_WORKER):
            message = Sentence("the group of workers is named `{}`; did you mean `{}`?", name, _WORKER)
            yield Problem("unknown-role", message, name, severity=Severity.WARNING, meant=_WORKER)


def _find_unused_fields(job: JobSpec, templates: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Report what describes pods, because a job with `clusterSelector` creates none."""
    message = "a RayJob with `ray.clusterSelector` has no pods, so `{}` has no effect; remove it"
    for name, template in templates.items():
        fields = {key: value for key, value in find_main_container(template).items() if key != "name"}
        for part in (template.get("spec"), template.get("metadata")):
            fields.update((key, value) for key, value in (part or {}).items() if key != "containers")
        for key, value in fields.items():
            yield Problem("unsupported-by-kind", message.format(key), value if value_of(value) is value else key)
            return
        if name != HEAD and value_of(job.roles[name].replica.get("replicas")) not in (None, 1):
            node = job.roles[name].replica["replicas"]
            yield Problem("unsupported-by-kind", message.format("replicas"), node)
    for key in spec.get("rayClusterSpec") or ():
        yield Problem("unsupported-by-kind", message.format(key), key)


def _like(node: Any, value: Any) -> Node:
    """A value with the location of the first scalar in a node."""
    while isinstance(node, (dict, list)):
        node = next(iter(node.values() if isinstance(node, dict) else node), None)
    return with_value(node, value)
