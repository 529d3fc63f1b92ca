"""What a migration changes, read from the rendered objects alone: nothing here knows how jobgen compares two jobs."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from test_migrate_law import HARMLESS, PAIRS, migrate, repositories

Obj = Mapping[str, Any]
LEADERS = ("launcher", "head", "submitter")
_BY_KEY = {"volumeMounts": "mountPath"}


def merge(old: Any, new: Any, field: str = "") -> Any:
    """Return what Kubernetes makes of two parts of a pod: maps are merged, and lists by the names of their items."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: merge(old.get(key), value, key) for key, value in new.items()}}
    key = _BY_KEY.get(field, "name")
    if isinstance(old, list) and new and all(isinstance(each, dict) and key in each for each in (*old, *new)):
        merged = {each[key]: each for each in old}
        for each in new:
            merged[each[key]] = merge(merged.get(each[key]), each)
        return list(merged.values())
    return new


def list_templates(objects: list[Obj]) -> Iterator[tuple[str, int, Obj]]:
    """Yield the role, the number of pods and the template of each group of pods."""
    job, *others = objects
    spec = job["spec"]
    match job["kind"]:
        case "Job" if "tasks" in spec:
            yield from ((each["name"], each.get("replicas", 1), each["template"]) for each in spec["tasks"])
        case "Job":
            yield "node", spec.get("parallelism", 1), spec["template"]
        case "JobSet":
            yield from list_replicated(spec["replicatedJobs"])
        case "RayJob":
            for each in spec["rayClusterSpec"].get("workerGroupSpecs", ()):
                yield each["groupName"], each.get("replicas", 1), each["template"]
        case "TrainJob":
            yield from list_nodes(spec, others)
        case _ if "worker" in spec:
            yield "worker", spec["worker"].get("replicas", 1), spec["worker"]["template"]
        case _ if isinstance(spec.get("replicaSpecs"), list):
            for each in spec["replicaSpecs"]:
                yield each.get("type") or each.get("name"), each.get("replicas", 1), each["template"]
        case _:
            [roles] = (each for field, each in spec.items() if field.endswith("ReplicaSpecs"))
            yield from ((name, each.get("replicas", 1), each["template"]) for name, each in roles.items())


def list_replicated(jobs: list[Obj]) -> Iterator[tuple[str, int, Obj]]:
    for each in jobs:
        spec = each["template"]["spec"]
        yield each["name"], each.get("replicas", 1) * spec.get("parallelism", 1), spec["template"]


def list_nodes(spec: Obj, others: list[Obj]) -> Iterator[tuple[str, int, Obj]]:
    """Yield the pods of a TrainJob: those of its runtime with what it sets for its nodes."""
    runtime = next((each for each in others if each["metadata"]["name"] == spec["runtimeRef"]["name"]), None)
    shipped = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}
    trainer = spec.get("trainer", {})
    nodes = trainer.get("numNodes", 1)
    for name, count, template in list_replicated(
        runtime["spec"]["template"]["spec"]["replicatedJobs"] if runtime else [shipped]
    ):
        changed: Any = template
        for each in spec.get("podTemplateOverrides", ()):
            targets = [target["name"] for target in each.get("targetJobs", ())]
            part = {field: each[field] for field in ("metadata", "spec") if field in each}
            changed = merge(changed, part) if name in targets or not targets else changed
        for each in spec.get("runtimePatches", ()):
            patched = each["trainingRuntimeSpec"]["template"]["spec"].get("replicatedJobs", ())
            for part in (job["template"]["spec"].get("template", {}) for job in patched if job["name"] == name):
                changed = merge(changed, part)
        if name == "node":
            own = {field: trainer[field] for field in ("image", "command", "args", "env") if field in trainer}
            own |= {"resources": trainer["resourcesPerNode"]} if "resourcesPerNode" in trainer else {}
            changed = merge(changed, {"spec": {"containers": [{"name": "node", **own}]}})
        yield name, nodes if name == "node" else count, changed


def count_pods(objects: list[Obj], framework: str) -> Counter[tuple[Any, ...]]:
    """Count the pods of a job by what they run; those that start others run what an operator gives them."""
    found: Counter[tuple[Any, ...]] = Counter()
    for role, count, template in list_templates(objects):
        if role.lower() in LEADERS or (framework == "mpi" and role.lower() == "master"):
            continue
        spec = template["spec"]
        main = next(each for each in spec["containers"] if each["name"] != "side")
        volumes = {each["name"]: json.dumps({**each, "name": ""}) for each in spec.get("volumes", ())}
        mounts = {each["mountPath"]: volumes.get(each["name"]) for each in main.get("volumeMounts", ())}
        beside = (*spec["containers"], *spec.get("initContainers", ()))
        row = (
            main.get("image"),
            (*(main.get("command") or ()), *(main.get("args") or ())),
            json.dumps(main.get("resources", {}).get("limits"), sort_keys=True),
            tuple(sorted((each["name"], each.get("value")) for each in main.get("env", ()) if each["name"] in "ABC")),
            tuple((path, mounts.get(path)) for path in ("/data", "/ckpt", "/dev/shm")),
            [each["image"] for each in beside if each["name"] == "side"] != [],
            json.dumps(main.get("envFrom")),
            json.dumps([spec.get(field) for field in ("nodeSelector", "tolerations", "serviceAccountName")]),
            template.get("metadata", {}).get("labels", {}).get("team"),
        )
        found[row] += count
    return found


more = {
    "restartPolicy": st.sampled_from(["OnFailure", "Never", "ExitCode"]),
    "runPolicy": st.sampled_from([{"backoffLimit": 6}, {"backoffLimit": 0}, {"activeDeadlineSeconds": 60}]),
    "tolerations": st.just([{"key": "gpu", "operator": "Exists"}]),
}


@laws(6)
@given(st.data())
def test_objects_have_the_same_pods(data: st.DataObject) -> None:
    framework, source, target = data.draw(st.sampled_from(PAIRS))
    job, overlays, _ = data.draw(repositories(framework, source, target))
    job["spec"] |= data.draw(st.fixed_dictionaries({}, optional=more))
    if framework == "mpi" and data.draw(st.booleans()):
        job["spec"]["mpi"] = {"slotsPerWorker": 2}
    accepted = data.draw(st.sampled_from([(), HARMLESS]))
    with tempfile.TemporaryDirectory() as folder:
        sides = migrate(Path(folder), job, overlays, target, accepted) or {}
    for env, (before, after) in sides.items():
        if before and after:
            assert count_pods(after, framework) == count_pods(before, framework), env
