"""Where a field belongs that a job or an overlay does not have: found in the schemas, or a word of another tool."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.k8s.devices import is_device
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import InvalidPathError, Step, format_dotted, parse_dotted
from jobgen.model.suggest import did_you_mean, list_alternatives
from jobgen.schema.types_of_release import contains, read_types
from jobgen.spec.overlay import name_field
from jobgen.yamlio.write import to_inline_yaml

JOB, ROLE, OVERLAY, PATCH, MATCH = "a job", "a role", "an overlay", "a patch", "a match"
"""Titles of the mappings of jobgen's formats, as their schemas name them."""

_MAIN_CONTAINER = "`image`, `command`, `args` and other fields of the main container"
_MAX_FORM = 100
_ROLES = "`roles.<role>`"
_PODS = "`replicas`, the number of all pods; or `replicas` of each role"
_SECONDS = "`runPolicy.activeDeadlineSeconds`, in seconds"
_RESTARTS = "`runPolicy.backoffLimit`"
_JOB_WORDS = {
    # Slurm, docker-compose, and launchers of other clusters.
    **dict.fromkeys("maxRuntime time timeLimit timelimit timeout wallTime walltime".split(), _SECONDS),
    **dict.fromkeys("maxRestarts maxRetries maxRetry retries retry".split(), _RESTARTS),
    **dict.fromkeys("cpusPerTask cores ncpus".split(), "`resources.cpu`"),
    **dict.fromkeys("accelerators gpusPerTask gres ngpus numGpus".split(), "`resources.gpu`"),
    **dict.fromkeys("mem memPerNode memLimit".split(), "`resources.memory`"),
    **dict.fromkeys("ntasksPerNode nproc numProcesses procsPerNode tasksPerNode".split(), "`pytorch.nprocPerNode`"),
    **dict.fromkeys("chdir cwd workdir workDir".split(), "`workingDir`"),
    **dict.fromkeys("cmd run script".split(), "`command`"),
    **dict.fromkeys("constraint nodelist".split(), "`nodeSelector`"),
    **dict.fromkeys("dockerImage containerImage".split(), "`image`"),
    **dict.fromkeys("partition".split(), "`queue`"),
    **dict.fromkeys("sharedMemory shmSize".split(), "`shm`"),
    "jobName": "`metadata.name`",
    "count": _PODS,
    "containers": f"{_MAIN_CONTAINER}, or `podTemplate.spec.containers` for others",
    "cpu": "`resources.cpu`",
    "cpus": "`resources.cpu`",
    "entrypoint": "`command`",
    "environment": "`env`",
    "gpus": "`resources.gpu`",
    "gpusPerNode": "`resources.gpu`",
    "gpusPerReplica": "`resources.gpu`",
    "gpusPerWorker": "`resources.gpu`",
    "instances": _PODS,
    "memory": "`resources.memory`",
    "metadata": "`metadata` beside `spec`",
    "name": "`metadata.name`",
    "namespace": "`metadata.namespace`",
    "nnodes": _PODS,
    "nodes": _PODS,
    "nprocPerNode": "`resources.gpu`, or `pytorch.nprocPerNode` for another number of processes",
    "numNodes": _PODS,
    "numWorkers": _PODS,
    "priorityClassName": "`priority`",
    "parallelism": _PODS,
    "replicaSpecs": _ROLES,
    "spec": "`podTemplate.spec`, or `manifest.spec` for the custom resource",
    "template": "`podTemplate`",
    "values": "`defaults` and `patches` of an overlay",
    "volumeMounts": "`volumes.<name>.mountPath`",
    "workers": "`roles.worker.replicas`",
    "worldSize": _PODS,
}
_ROLE_NAMES = frozenset(
    ("chief", "evaluator", "head", "launcher", "master", "node", "ps", "scheduler", "server", "worker")
)
_OVERLAY_WORDS = {
    "bases": "`extends` for overlays",
    "commonAnnotations": "`defaults.annotations`",
    "commonLabels": "`defaults.labels`",
    "components": "`extends` for overlays",
    "configMapGenerator": "`configs` with `data` in a job or in `defaults`",
    "environment": "the name of the folder: overlays/<environment>/",
    "image": "`defaults.image`, or `merge.image` in `patches`",
    "namePrefix": "`namespace`, which separates environments",
    "nameSuffix": "`namespace`, which separates environments",
    "patchesJson6902": "`jsonPatch` in `patches`",
    "patchesStrategicMerge": "`merge` or `manifest` in `patches`",
    "replacements": "`merge` in `patches`",
    "secretGenerator": "a Secret that the cluster has, by name",
    "transformers": "`patches`",
    "valueFiles": "`defaults` and `patches`",
    "values": "`defaults` and `patches`",
    "valuesObject": "`defaults` and `patches`",
    "vars": "`merge` in `patches`",
}
_PATCH_WORDS = {
    "patch": "`merge`, `manifest` or `jsonPatch`",
    "path": "the patch itself: `merge`, `manifest` or `jsonPatch`",
    "target": "`match`",
    "when": "`match`",
}
_FOREIGN_WORDS: Mapping[str, Mapping[str, str]] = {
    "a volume": {"claim": "`pvc`", "claimName": "`pvc`", "mount": "`mountPath`", "path": "`mountPath`"},
    "an overlay's metadata": {
        "annotations": "`spec.defaults.annotations`",
        "labels": "`spec.defaults.labels`",
        "namespace": "`namespace` below `spec`",
    },
    "an exception": dict.fromkeys(("date", "end", "expiry", "until"), "`expires`"),
    "jobgen's settings": {"envs": "`environments`", "env": "`environments`", "rules": "`severities`"},
    JOB: _JOB_WORDS,
    ROLE: {key: "`replicas`" if word is _PODS else word for key, word in _JOB_WORDS.items()},
    OVERLAY: _OVERLAY_WORDS,
    PATCH: _PATCH_WORDS,
}


_ONE_FIELD = lazy_pattern(r"`[A-Za-z]+`\Z")
_OTHER_VALUES: Mapping[str, Mapping[str, str]] = {
    "framework": {
        "accelerate": "pytorch",
        "colossal": "colossalai",
        "custom": "generic",
        "flax": "jax",
        "horovod": "mpi",
        "lightning": "pytorch",
        "none": "generic",
        "openmpi": "mpi",
        "other": "generic",
        "paddlepaddle": "paddle",
        "tf": "tensorflow",
        "torch": "pytorch",
        "torchrun": "pytorch",
        "xgb": "xgboost",
    },
    "platform": {
        "batch": "kubernetes",
        "k8s": "kubernetes",
        "kubeflow-trainer": "trainer",
        "kubeflow-trainer-v2": "trainer",
        "kubeflow-training-operator": "kubeflow",
        "kubeflow-v1": "kubeflow",
        "kubeflow-v2": "trainer",
        "kuberay": "ray",
        "kuberay-operator": "ray",
        "mpi": "mpi-operator",
        "t9k": "tensorstack",
        "trainer-v2": "trainer",
        "training-operator": "kubeflow",
        "vcjob": "volcano",
    },
}
"""Other words for values of fields: names of operators, libraries and launchers."""


_LAYER_WORDS = {
    "metadata": "`manifest: {metadata: …}` in `patches`",
    "name": "the name of the job in `match.names`",
    "namespace": "`namespace` of the overlay, or `manifest: {metadata: {namespace: …}}` in `patches`",
}
"""Words for `defaults` and `merge`, which have the fields of a job but not its metadata."""


def find_foreign_word(title: str, key: str, value: Any, name: str = "") -> str:
    """What to write instead of a word of another tool; an empty string if it is none. `name` is that of the mapping."""
    if title == JOB and name in ("defaults", "merge") and key in _LAYER_WORDS:
        return f"write {_LAYER_WORDS[key]}"
    if title == OVERLAY and key == "resources" and isinstance(value, list):
        return "remove it: all files under jobs/ are read"
    if title == MATCH and key in ("job", "jobs", "name"):
        names = untraced(value)
        shown = f"names: {to_inline_yaml(names if isinstance(names, list) else [names])}"
        return f"write `{shown}`" if len(shown) <= _MAX_FORM and "`" not in shown else "write `names`"
    if title == JOB and key in _ROLE_NAMES:
        return "it is a role, so write it below `roles`"
    words = _FOREIGN_WORDS.get(title, {})
    word = words.get(key, "") or words.get(_to_camel_case(key), "")
    if title in (JOB, ROLE) and is_device(key):
        word = "it below `resources`"
    return f"write {word}" if word else ""


def find_similar_word(title: str, key: str) -> str:
    """Return the field, in backticks, that a misspelled word of another tool means: `env` for `enviroment`."""
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    words = _FOREIGN_WORDS.get(title, {})
    word = words.get(find_meant(key, words), "") if not {key, _to_camel_case(key)} & words.keys() else ""
    return word if _ONE_FIELD.match(word) else ""


def find_value(name: str, found: str) -> str:
    """Return the value of a field that another word means, such as a platform by its operator; empty if unknown."""
    from jobgen.model.meant import find_meant

    words = _OTHER_VALUES.get(name.partition("[")[0].removesuffix("s"), {})
    return words.get(found.lower(), "") or words.get(find_meant(found, words), "")


def _to_camel_case(key: str) -> str:
    """Return `nprocPerNode` for `nproc_per_node` and `nproc-per-node`."""
    first, *rest = re.split("[-_]", key)
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def find_place(title: str, key: str, schemas: Mapping[str, Any], framework: str) -> str:
    """Where a field belongs that the mapping with this title does not have; an empty string if that is unknown."""
    place = ""
    if title in (JOB, ROLE):
        spellings = (key, _to_camel_case(key))
        found = (_find_in_job(title, each, schemas, name) for each in spellings for name in (framework, ""))
        place = next(filter(None, found), "")
    elif title in (OVERLAY, PATCH):
        place = _find_in_overlay(title, key, schemas)
    return f"write {place}" if place else ""


def find_block(title: str, key: str, schemas: Mapping[str, Any], framework: str) -> str:
    """The one block of a job that has the field, for `runPolicy.backoffLimit`; empty if there is none or several."""
    places = _list_job_places(key, schemas, framework) if title == JOB else []
    blocks = [place.removesuffix(f".{key}") for place in places]
    return blocks[0] if len(blocks) == 1 and "." not in blocks[0] else ""


def _list_job_places(key: str, schemas: Mapping[str, Any], framework: str) -> list[str]:
    """The paths of fields of that name in a job; blocks of other frameworks are left out."""
    fields = _job_fields(schemas)
    others = {name for name in fields["properties"]["framework"].get("enum", ()) if framework and name != framework}
    places = [place for place in _list_places(fields, key) if place.partition(".")[0] not in others]
    # What concerns every platform is meant rather than what concerns one.
    platforms = fields["properties"]["platform"].get("enum", ())
    return [place for place in places if place.partition(".")[0] not in platforms] or places


def _find_in_job(title: str, key: str, schemas: Mapping[str, Any], framework: str) -> str:
    fields = _job_fields(schemas)
    if title == ROLE and key in fields["properties"]:
        return f"`{key}` of the job, next to `roles`"
    if key.endswith("ReplicaSpecs"):
        return f"{_ROLES}, or `manifest.spec.{key}`"
    places = _list_job_places(key, schemas, framework)
    if places:
        return _join(places) if len(places) <= 2 else ""
    if key in _pod_fields("PodSpec"):
        return f"`podTemplate.spec.{key}`"
    return f"`podTemplate.spec.containers[].{key}`" if key in _pod_fields("Container") else ""


def _find_in_overlay(title: str, key: str, schemas: Mapping[str, Any]) -> str:
    cluster = schemas["overlay_v1.json"]["properties"]["spec"]["properties"]["cluster"]
    if key in _job_fields(schemas)["properties"] and not (title == OVERLAY and key in cluster["properties"]):
        return f"`defaults.{key}`, or `merge.{key}` in `patches`" if title == OVERLAY else f"`merge.{key}`"
    places = _list_places({"properties": {"cluster": cluster}}, key)
    if title == OVERLAY and len(places) == 1:
        return _join(places)
    found = _find_in_job(JOB, key, schemas, "")
    return found.replace("`podTemplate", "`defaults.podTemplate").replace("`runPolicy", "`defaults.runPolicy")


def _job_fields(schemas: Mapping[str, Any]) -> Any:
    return schemas["trainingjob_v1.json"]["$defs"]["fields"]


def _join(places: list[str]) -> str:
    return list_alternatives(f"`{place}`" for place in places)


def _list_places(schema: Mapping[str, Any], key: str) -> list[str]:
    """The paths of all fields of that name below the first level of a schema."""
    return [path for path in dict.fromkeys(_iterate(schema, "")) if path.rpartition(".")[2] == key and "." in path]


def _iterate(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        here = f"{path}{name}"
        yield here
        # Roles have the fields of the job; sweeps and lists have fields of their own.
        if name not in ("roles", "matrix"):
            yield from _iterate(child, f"{here}.")
            extra = child.get("additionalProperties")
            for option in extra.get("anyOf", [extra]) if isinstance(extra, dict) else ():
                yield from _iterate(option, f"{here}.<name>.")


@functools.cache
def _pod_fields(type_name: str) -> frozenset[str]:
    fields = read_types("core_v1")["types"][type_name]["properties"]
    return frozenset(name for name, field in fields.items() if contains(field, ""))


# The schema accepts any resource. Other resources have a domain, which is written in brackets.
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "gpu")


def find_lock_errors(document: Any, schemas: Mapping[str, Any]) -> Iterator[Problem]:
    """Report locked paths that are not a field of a job. Roles depend on the platform and are checked later."""
    job = schemas["trainingjob_v1.json"]
    for entry in document["spec"].get("locked", ()):
        node = name_field(entry)
        try:
            path = parse_dotted(value_of(node))
        except InvalidPathError as error:
            yield Problem("invalid-value", str(error), node)
            continue
        if path != ("namespace",):
            yield from _check_path(path, node, job)


def _check_path(path: tuple[Step, ...], node: Node, job: Any) -> Iterator[Problem]:
    options = _resolve({"$ref": "#/$defs/fields"}, job)
    if not path:
        yield Problem("unknown-field", f"`{value_of(node)}` is not a field of a job", node)
    for depth, step in enumerate(path):
        mappings = [option for option in options if _is_mapping(option)]
        known = sorted({name for option in mappings for name in option.get("properties", ())} - {"$patch"})
        found = [each for option in mappings for each in _child(option, step)]
        if depth and str(path[depth - 1]) in ("resources", "requests", "limits"):
            known = sorted({*known, *_RESOURCES})
            if step not in known and not any(part in str(step) for part in ("hugepages-", "/")):
                found = []
        if not found:
            yield _report(path, depth, node, known)
            return
        options = [option for each in found for option in _resolve(each, job)]
        # A mapping may have any fields.
        free = (option for option in options if not option.keys() & {"properties", "additionalProperties"})
        if {} in found or any(map(_is_mapping, free)):
            return


def _report(path: tuple[Step, ...], depth: int, node: Node, known: list[str]) -> Problem:
    written, step = value_of(node), path[depth]
    if not isinstance(step, str):
        message = f"`{written}` names an item of a list; lock the whole list: `{format_dotted(path[:depth])}`"
        return Problem("invalid-value", message, node)
    if depth == 0:
        return Problem("unknown-field", f"`{written}` is not a field of a job{did_you_mean(step, known)}", node)
    holder = format_dotted(path[:depth])
    listed = f"; it has {', '.join(f'`{name}`' for name in known)}" if known else f"; lock `{holder}`"
    hint = did_you_mean(step, known) or listed
    return Problem("unknown-field", f"`{written}` locks nothing: `{holder}` has no field `{step}`{hint}", node)


def _resolve(schema: Any, job: Any) -> list[Any]:
    """The alternatives of a schema, without references."""
    if "$ref" in schema:
        target = job
        for name in schema["$ref"].partition("#")[2].split("/")[1:]:
            target = target[name]
        return _resolve(target, job)
    return [each for option in schema.get("anyOf", ()) for each in _resolve(option, job)] or [schema]


def _is_mapping(schema: Any) -> bool:
    return "object" in schema.get("type", "object") and "enum" not in schema


def _child(schema: Any, step: Step) -> list[Any]:
    if not isinstance(step, str):
        return []
    fields = schema.get("properties", {})
    other = schema.get("additionalProperties", {})
    return [fields[step]] if step in fields else [other] if isinstance(other, dict) else []
