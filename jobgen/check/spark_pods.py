"""The pods of a SparkApplication: its driver and its executors, also where `sparkConf` says what they request."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.counted_pods import MAX_PODS, CreatedPods, PodSearch, read_count
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.place import At, Derived, Gathered

# Spark: https://spark.apache.org/docs/latest/running-on-kubernetes.html

_SPARK_PLACES = ("nodeSelector", "affinity", "tolerations", "schedulerName")


def find_spark_pods(manifest: Manifest) -> CreatedPods:
    """Return the driver and the executors. The operator lets fields of the object override `sparkConf`."""
    spec = manifest.spec if manifest.kind_name == "SparkApplication" else as_mapping(manifest.spec.get("template"))
    written = as_mapping(spec.get("sparkConf"))
    settings = {str(name): as_text(value) for name, value in written.items()}
    search = PodSearch(manifest)
    executors = _count_executors(spec, settings)
    for role, count in (("driver", 1), ("executor", executors)):
        given = as_mapping(spec.get(role))
        prefix = f"spark.{role}.resource."
        # A device has the name of a vendor, as in `nvidia.com/gpu`.
        amounts = {
            f"{settings.get(f'{prefix}{name}.vendor') or 'nvidia.com'}/{name}": At(written, key)
            for name, key in (
                (key[len(prefix) : -7], key) for key in settings if key.startswith(prefix) and key.endswith(".amount")
            )
        }
        limits: dict[str, Plain] = {name: settings[place.key] for name, place in amounts.items()}
        gpu = as_mapping(given.get("gpu"))
        if as_text(gpu.get("name")):
            limits[as_text(gpu.get("name"))] = gpu.get("quantity")
            amounts[as_text(gpu.get("name"))] = At(gpu, "quantity")
        template = as_mapping(given.get("template"))
        start = f"spark.kubernetes.{role}.label."
        labels = {
            **as_mapping(get_path(template, "metadata", "labels")),
            **{key[len(start) :]: value for key, value in settings.items() if key.startswith(start)},
            **manifest.labels,
            **as_mapping(given.get("labels")),
        }
        main: Plain = {"name": f"spark-kubernetes-{role}", "resources": {"limits": Gathered(limits, amounts)}}
        places = {name: given.get(name, spec.get(name)) for name in _SPARK_PLACES}
        places["nodeSelector"] = {**_read_node_selector(settings, role), **as_mapping(places["nodeSelector"])}
        pod: dict[str, Plain] = {**places, "containers": [main]}
        others = Derived({key: value for key, value in given.items() if key not in ("gpu", "labels")}, given)
        search.search([pod, others], labels, count)
    advice = "set `maxExecutors`" if executors == MAX_PODS else ""
    return CreatedPods(manifest, (), search.found, search.unknown, advice=advice)


def _read_node_selector(settings: Mapping[str, str], role: str) -> dict[str, Plain]:
    """Return the labels that settings select nodes by; those of a role override those of all pods."""
    found: dict[str, Plain] = {}
    for start in ("spark.kubernetes.node.selector.", f"spark.kubernetes.{role}.node.selector."):
        found |= {key[len(start) :]: value for key, value in settings.items() if key.startswith(start)}
    return found


def _count_executors(spec: Mapping[str, Plain], settings: Mapping[str, str]) -> int:
    given = as_integer(get_path(spec, "executor", "instances"))
    instances = given if given is not None else read_count(settings.get("spark.executor.instances", ""))
    scaling = as_mapping(spec.get("dynamicAllocation"))
    enabled = scaling.get("enabled")
    if enabled is True or (enabled is None and settings.get("spark.dynamicAllocation.enabled", "").lower() == "true"):
        most = as_integer(scaling.get("maxExecutors"))
        most = read_count(settings.get("spark.dynamicAllocation.maxExecutors", "")) if most is None else most
        return MAX_PODS if most is None else max(most, instances or 0)
    return 1 if instances is None else max(instances, 0)
