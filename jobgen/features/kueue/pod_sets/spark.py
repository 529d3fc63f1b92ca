"""Pod sets of SparkApplications: a driver and its executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.pod_sets.raw import RawPodSet, get_spec, make_pod_set, read_count
from jobgen.features.kueue.pod_sets.topology_request import Gates

# Spark writes memory as Java does: `512m` is 512 MiB.
_MEMORY_UNITS = {
    "kb": "Ki", "mb": "Mi", "gb": "Gi", "tb": "Ti", "pb": "Pi", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"
}  # fmt: skip


def list_spark_application(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a SparkApplication."""
    spec = get_spec(obj)
    driver, executor = (as_mapping(spec.get(name)) for name in ("driver", "executor"))
    volumes = {str(each.get("name")): each for each in map(as_mapping, as_list(spec.get("volumes")))}
    return [
        make_pod_set("driver", 1, _build_template(driver, "spark-kubernetes-driver", volumes), gates),
        make_pod_set(
            "executor",
            read_count(executor.get("instances"), 0),
            _build_template(executor, "spark-kubernetes-executor", volumes),
            gates,
        ),
    ]


def _build_template(role: Mapping[str, Any], container: str, volumes: Mapping[str, Any]) -> dict[str, Any]:
    """Build the template of a role from the fields that concern scheduling."""
    spec: dict[str, Any] = {
        name: role[name] for name in ("nodeSelector", "affinity", "tolerations", "priorityClassName") if role.get(name)
    }
    main: dict[str, Any] = {"name": container}
    if resources := _build_resources(role):
        main["resources"] = resources
    if mounts := [each for each in map(as_mapping, as_list(role.get("volumeMounts"))) if _is_mounted(each, volumes)]:
        main["volumeMounts"] = mounts
        spec["volumes"] = [volumes[name] for name in dict.fromkeys(str(each.get("name")) for each in mounts)]
    spec["containers"] = [main, *_without_duplicates(role.get("sidecars"))]
    if init := _without_duplicates(role.get("initContainers")):
        spec["initContainers"] = init
    base = as_mapping(as_mapping(role.get("template")).get("metadata"))
    metadata: dict[str, Any] = dict(base)
    for field in ("labels", "annotations"):
        if merged := {**as_mapping(base.get(field)), **as_mapping(role.get(field))}:
            metadata[field] = merged
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def _is_mounted(mount: Mapping[str, Any], volumes: Mapping[str, Any]) -> bool:
    """Whether the operator mounts a volume; Spark itself mounts its local folders."""
    name = str(mount.get("name"))
    return name in volumes and not name.startswith("spark-local-dir-")


def _without_duplicates(containers: Any) -> list[Any]:
    found: dict[tuple[str, str], Any] = {}
    for each in map(as_mapping, as_list(containers)):
        found.setdefault((str(each.get("name")), str(each.get("image"))), each)
    return list(found.values())


def _build_resources(role: Mapping[str, Any]) -> dict[str, Any]:
    requests = {"cpu": role.get("coreRequest"), "memory": _to_kubernetes_memory(role.get("memory"))}
    limits: dict[str, Any] = {"cpu": role.get("coreLimit"), "memory": _to_kubernetes_memory(role.get("memoryLimit"))}
    gpu = as_mapping(role.get("gpu"))
    if gpu.get("name") and read_count(gpu.get("quantity"), 0):
        limits[str(gpu["name"])] = str(gpu["quantity"])
    made = {"limits": limits, "requests": requests}
    kept = {name: {key: value for key, value in each.items() if value is not None} for name, each in made.items()}
    return {name: each for name, each in kept.items() if each}


def _to_kubernetes_memory(memory: Any) -> str | None:
    """Convert `512m` to `512Mi`; what already is a quantity stays."""
    if memory is None:
        return None
    text = str(memory).strip().lower()
    for suffix, unit in _MEMORY_UNITS.items():
        if text.endswith(suffix) and text[: -len(suffix)].isdigit():
            return text[: -len(suffix)] + unit
    return str(memory)
