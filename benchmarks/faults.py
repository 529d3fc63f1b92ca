"""Mistakes that people make in manifests, each put into otherwise valid data or text.

A fault of `DATA` changes a manifest in place and returns whether it could: a job without GPUs cannot ask for too many.
A fault of `TEXT` changes a YAML file. Together they lead to findings of many rules, of every severity and category.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Data = dict[str, Any]
DataFault = Callable[[Random, Data], bool]


def pod_specs(data: Any) -> Iterator[Data]:
    """Yield every pod spec below some data."""
    if isinstance(data, dict):
        if "containers" in data:
            yield data
        else:
            for value in data.values():
                yield from pod_specs(value)
    elif isinstance(data, list):
        for value in data:
            yield from pod_specs(value)


def pods_of_job(data: Data) -> list[Data]:
    """Return the pod specs of a job; a runtime is a template, so that fewer rules check its pods."""
    return [] if data["kind"].endswith("Runtime") else list(pod_specs(data))


def containers(data: Data) -> list[Data]:
    """Return the containers of a job that train."""
    return [each for pod in pods_of_job(data) for each in pod["containers"] if "/infra/" not in each["image"]]


def roles(data: Data) -> Data:
    """Return the roles of a kind that has a mapping of them."""
    return next((value for key, value in data["spec"].items() if key.endswith("ReplicaSpecs")), {})


def in_container(change: Callable[[Data], Any]) -> DataFault:
    """Return a fault in one container; the change returns False if it cannot be made."""

    def apply(random: Random, data: Data) -> bool:
        found = containers(data)
        return bool(found) and change(random.choice(found)) is not False

    return apply


def in_pod(change: Callable[[Data], Any]) -> DataFault:
    """Return a fault in one pod spec."""

    def apply(random: Random, data: Data) -> bool:
        found = pods_of_job(data)
        return bool(found) and change(random.choice(found)) is not False

    return apply


def in_metadata(*path: str, value: Any) -> DataFault:
    """Return a fault that sets a field of the object's metadata."""

    def apply(random: Random, data: Data) -> bool:
        node = data["metadata"]
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = value
        return True

    return apply


def rename_command(container: Data) -> bool:
    if "command" not in container:
        return False
    container["comand"] = container.pop("command")
    return True


def set_image(pattern: str) -> DataFault:
    """Return a fault that replaces the tag of an image; `{}` is its repository."""

    def apply(container: Data) -> None:
        repository = re.sub(r"(@sha256:\w+|:[^/:]+)$", "", container["image"])
        container["image"] = pattern.format(repository)

    return in_container(apply)


def change_gpus(container: Data) -> bool:
    """Request another number of GPUs than the limit."""
    limits = container.get("resources", {}).get("limits", {})
    found = [name for name in limits if name.endswith("/gpu")]
    if not found:
        return False
    container["resources"].setdefault("requests", {})[found[0]] = int(limits[found[0]]) + 1
    return True


def misspell_gpus(container: Data) -> bool:
    limits = container.get("resources", {}).get("limits", {})
    if "nvidia.com/gpu" not in limits or "requests" in container["resources"]:
        return False
    limits["nvidia.com/gpus"] = limits.pop("nvidia.com/gpu")
    return True


def set_limit(name: str, value: Any) -> DataFault:
    def apply(container: Data) -> None:
        resources = container.setdefault("resources", {})
        resources.setdefault("limits", {})[name] = value
        resources.pop("requests", None)

    return in_container(apply)


def request_more(container: Data) -> bool:
    if "limits" not in container.get("resources", {}):
        return False
    container["resources"].setdefault("requests", {})["memory"] = "4Ti"
    return True


def add_env(*entries: Data) -> DataFault:
    return in_container(lambda container: container.setdefault("env", []).extend(entries))


def add_to(key: str, *entries: Any) -> Callable[[Data], None]:
    return lambda node: node.setdefault(key, []).extend(entries)


def set_field(key: str, value: Any) -> Callable[[Data], None]:
    return lambda node: node.__setitem__(key, value)


def repeat_container(pod: Data) -> None:
    pod["containers"].append(dict(pod["containers"][0]))


def repeat_mount(container: Data) -> bool:
    if "volumeMounts" not in container:
        return False
    container["volumeMounts"].append(dict(container["volumeMounts"][0]))
    return True


def repeat_volume(pod: Data) -> bool:
    if "volumes" not in pod:
        return False
    pod["volumes"].append(dict(pod["volumes"][0]))
    return True


def mount_host(path: str) -> DataFault:
    def apply(pod: Data) -> None:
        pod.setdefault("volumes", []).append({"name": "host", "hostPath": {"path": path}})
        pod["containers"][0].setdefault("volumeMounts", []).append({"name": "host", "mountPath": "/host"})

    return in_pod(apply)


def in_role(change: Callable[[Data], Any]) -> DataFault:
    def apply(random: Random, data: Data) -> bool:
        found = list(roles(data).values())
        return bool(found) and change(random.choice(found)) is not False

    return apply


def rename_worker(random: Random, data: Data) -> bool:
    found = roles(data)
    if "Worker" not in found or data["kind"] == "TFJob":
        return False
    found["worker"] = found.pop("Worker")
    return True


def double_master(random: Random, data: Data) -> bool:
    found = roles(data)
    if "Master" not in found:
        return False
    found["Master"]["replicas"] = 2
    return True


def misspell_clean_up(random: Random, data: Data) -> bool:
    if not roles(data):
        return False
    data["spec"].setdefault("runPolicy", {})["cleanPodPolicy"] = "running"
    return True


def use_old_version(random: Random, data: Data) -> bool:
    if data["apiVersion"] != "kubeflow.org/v1":
        return False
    data["apiVersion"] = "kubeflow.org/v1beta1"
    return True


def remove_template(role: Data) -> None:
    del role["template"]


def restart_always(random: Random, data: Data) -> bool:
    for role in roles(data).values():
        role["restartPolicy"] = "Always"
    return bool(roles(data)) and data["apiVersion"] == "kubeflow.org/v1"


RESERVED = {"PyTorchJob": "WORLD_SIZE", "TFJob": "TF_CONFIG", "XGBoostJob": "MASTER_ADDR", "PaddleJob": "PADDLE_MASTER"}


def set_reserved_variable(random: Random, data: Data) -> bool:
    name = "" if "elasticPolicy" in data["spec"] else RESERVED.get(data["kind"], "")
    return bool(name) and add_env({"name": name, "value": "4"})(random, data)


def misspell_queue(random: Random, data: Data) -> bool:
    labels = data["metadata"].setdefault("labels", {})
    labels["kueue.x-k8s.io/queue_name"] = labels.pop("kueue.x-k8s.io/queue-name", "team-queue")
    return True


PASSWORD = "Tr0ub4dor-9-battery"  # not a secret of anything
DATA: tuple[DataFault, ...] = (
    in_container(rename_command),
    in_container(change_gpus),
    set_image("{}:latest"),
    set_image("{}"),
    set_image("{}:1.0 "),
    set_image("{}:Latest:1"),
    in_container(misspell_gpus),
    set_limit("memory", "128"),
    set_limit("nvidia.com/gpu", "500m"),
    set_limit("memory", "64GB"),
    in_container(request_more),
    add_env({"name": "LOG", "value": "a"}, {"name": "LOG", "value": "b"}),
    add_env({"name": "DEBUG", "value": 1}),
    set_reserved_variable,
    add_env({"name": "DB_PASSWORD", "value": PASSWORD}),
    add_env({"name": "BAD NAME=", "value": "x"}),
    add_env({"name": "BOTH", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    in_container(set_field("imagePullPolicy", "Sometimes")),
    in_container(set_field("securityContext", {"privileged": True})),
    in_container(set_field("securityContext", {"capabilities": {"add": ["SYS_ADMIN"]}})),
    in_container(set_field("command", ["sh", "-c", "pip install transformers && python train.py"])),
    in_container(set_field("command", ["python", "train.py", "--out=${OUTPUT_DIR}"])),
    in_container(add_to("volumeMounts", {"name": "nowhere", "mountPath": "/nowhere"})),
    in_container(add_to("ports", {"name": "UPPER", "containerPort": 8080})),
    in_container(set_field("args", "--epochs 3")),
    in_container(repeat_mount),
    in_pod(repeat_container),
    in_pod(repeat_volume),
    in_pod(set_field("hostNetwork", True)),
    in_pod(set_field("nodeSelector", {"pool": True})),
    in_pod(set_field("tolerations", [{"key": "gpu", "operator": "Sometimes"}])),
    in_pod(set_field("nodeselector", {"pool": "gpu"})),
    mount_host("/var/lib/data"),
    mount_host("/var/run/docker.sock"),
    restart_always,
    in_role(set_field("restartPolicy", "onfailure")),
    in_role(set_field("replicas", "2")),
    in_role(set_field("replicas", -1)),
    in_role(remove_template),
    rename_worker,
    double_master,
    misspell_clean_up,
    use_old_version,
    in_metadata("name", value="Bert_Large"),
    in_metadata("resourceVersion", value="48151623"),
    in_metadata("finalizers", value=["example.com/wait"]),
    in_metadata("labels", "team", value="not a label!"),
    in_metadata("labels", "kueue.x-k8s.io/queue-name", value="Not_A_Queue"),
    misspell_queue,
    in_metadata("annotations", "kueue.x-k8s.io/queue-name", value="team-queue"),
    in_metadata("annotations", "argocd.argoproj.io/sync-wave", value="first"),
    in_metadata("annotations", "retries", value=3),
    in_metadata("namespace", value="{{ .Values.namespace }}"),
)


def repeat_line(text: str) -> str:
    """Write the kind of an object twice."""
    return re.sub(r"^kind: \S+$", r"\g<0>\n\g<0>", text, count=1, flags=re.MULTILINE)


def indent_with_tab(text: str) -> str:
    return re.sub(r"^ {2,}(?=\w)", "\t", text, count=1, flags=re.MULTILINE)


def use_unknown_alias(text: str) -> str:
    return re.sub(r"^(\s*)namespace: \S+$", r"\1namespace: *default", text, count=1, flags=re.MULTILINE)


def use_unknown_tag(text: str) -> str:
    return re.sub(r"\breplicas: (\d+)", r"replicas: !count \1", text, count=1)


def leave_quote_open(text: str) -> str:
    return re.sub(r"^kind: (\w+)", r'kind: "\1', text, count=1, flags=re.MULTILINE)


TEXT: tuple[Callable[[str], str], ...] = (
    repeat_line,
    indent_with_tab,
    use_unknown_alias,
    use_unknown_tag,
    leave_quote_open,
)


def add_data_fault(random: Random, data: Data, number: int) -> bool:
    """Put a fault into a manifest: the first that is possible there, in turn."""
    return any(DATA[(number + step) % len(DATA)](random, data) for step in range(len(DATA)))


def add_text_fault(text: str, number: int) -> str:
    """Put a fault into a YAML file: the first that is possible there, in turn."""
    changed = (TEXT[(number + step) % len(TEXT)](text) for step in range(len(TEXT)))
    return next(each for each in changed if each != text)
