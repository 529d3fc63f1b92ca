"""Containers: those of the pod, and those that run before them."""

from __future__ import annotations

from jobgen.check.admission.environment import env, env_from
from jobgen.check.admission.fields import (
    PodCheck,
    Table,
    alone,
    is_set,
    judge,
    mapping_of,
    mappings,
    missing,
    require,
    string,
    unsupported,
    word,
)
from jobgen.check.admission.mounts import devices, mounts
from jobgen.check.admission.names import DNS_LABEL, is_dns_label
from jobgen.check.admission.ports import host_ports, ports, same_on_host
from jobgen.check.admission.probes import NO_PROBES, PROBES
from jobgen.check.admission.resources import resources
from jobgen.check.admission.security import container_security
from jobgen.model.data import Data, value_of
from jobgen.model.finding import FixStep

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_POLICY = "invalid-container-policy"
# What Go's strings.TrimSpace takes off; Python takes off four separators more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def containers(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The containers of the pod; there must be one."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for container in value:
        if isinstance(container, dict):
            _container(container, names, key, pod)
            judge(container, _MAIN, pod)
    host_ports(value, pod)
    if "hostNetwork" in pod.spec and pod.says("hostNetwork"):
        same_on_host(pod)


def init_containers(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The containers that run first, one by one; with `restartPolicy: Always` they stay."""
    if not isinstance(value, list):
        return
    names = _names(pod.spec.get("containers"))
    for container in value:
        if isinstance(container, dict):
            _container(container, names, key, pod)
            stays = "restartPolicy" in container and value_of(container["restartPolicy"]) == "Always"
            judge(container, _SIDECAR if stays else _INIT, pod)
            if "ports" in container:
                host_ports([container], pod)


def _names(containers: Data) -> set[str]:
    names = set()
    for container in containers if isinstance(containers, list) else ():
        name = value_of(container.get("name")) if isinstance(container, dict) else None
        if type(name) is str and name:
            names.add(name)
    return names


def ephemeral_containers(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Containers for debugging are added to a running pod, never written."""
    if isinstance(value, list) and value:
        message = "`ephemeralContainers` cannot be set when a pod is made; delete them"
        pod.report("ephemeral-container-in-template", message, key)


def _container(container: dict[str, Data], names: set[str], around: str, pod: PodCheck) -> None:
    """A name of its own, and an image."""
    name = value_of(container.get("name"))
    if name is None or name == "":
        missing("a container", container, "name", around, pod)
    elif type(name) is str:
        if not is_dns_label(name):
            pod.report("invalid-container-name", f"`{name}` is not a container's name; {DNS_LABEL}", container["name"])
        if name in names:
            pod.report("duplicate-container-name", f"`{name}` names two containers of the pod", container["name"])
        names.add(name)
    image = value_of(container.get("image"))
    if image is None or image == "":
        missing(f"container `{name}`" if name else "a container", container, "image", around, pod)
    elif type(image) is str and image.strip() != image and image.strip(_SPACE) != image:
        node = container["image"]
        bare_name = (FixStep("set", node, image.strip(_SPACE)),)
        pod.report("padded-image", f"`{image}` has space around the image's name", node, (bare_name, True))


def _resize(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """How a container takes a change of its resources."""
    names: set[str] = set()
    for policy in mappings(value):
        judge(policy, _RESIZE_POLICY, pod)
        require("a resize policy", policy, ("resourceName", "restartPolicy"), key, pod)
        name, restart = string(policy.get("resourceName")), string(policy.get("restartPolicy"))
        if name and name in names:
            pod.report(_POLICY, f"`{name}` has two resize policies", policy["resourceName"])
        names.add(name)
        if restart == "RestartContainer" and value_of(pod.restart_policy) == "Never":
            message = "`RestartContainer` cannot be meant in a pod whose `restartPolicy` is `Never`"
            pod.report(_POLICY, message, policy["restartPolicy"])


def _init_resize(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The same for a container that ends by itself, which is never restarted for it."""
    _resize(key, value, owner, pod)
    for policy in mappings(value):
        if value_of(policy.get("restartPolicy")) == "RestartContainer" and value_of(pod.restart_policy) != "Never":
            message = "`RestartContainer` cannot be meant for an init container that ends by itself"
            pod.report(_POLICY, message, policy["restartPolicy"])


def _restart_rules(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Rules by exit code, beside a container's own policy."""
    if not isinstance(value, list) or not value:
        return
    require("a container with `restartPolicyRules`", owner, ("restartPolicy",), key, pod)
    if len(value) > 20:
        pod.report(_POLICY, f"there are `{len(value)}` rules; Kubernetes takes 20", key)
    for rule in mappings(value):
        judge(rule, _RULE, pod)
        require("a restart rule", rule, ("action",), key, pod)
        if not is_set(rule.get("exitCodes")):
            missing("a restart rule", rule, "exitCodes", key, pod)


def _exit_values(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(value, list) and len(value) > 255:
        pod.report(_POLICY, f"there are `{len(value)}` exit codes; Kubernetes takes 255", key)


_RESIZE_POLICY: Table = {
    "resourceName": word("", "cpu", "memory"),
    "restartPolicy": word("", "NotRequired", "RestartContainer"),
}
_RULE: Table = {
    "action": word("", "Restart", "RestartAllContainers"),
    "exitCodes": mapping_of({"operator": word("", "In", "NotIn"), "values": _exit_values}, "operator"),
}
_COMMON: Table = {
    "env": alone(env, "fileKeyRef"),
    "envFrom": env_from,
    "imagePullPolicy": word("", "Always", "IfNotPresent", "Never"),
    "ports": alone(ports),
    "resources": alone(resources, "claims"),
    "resizePolicy": _resize,
    "restartPolicy": word(*_RESTART_POLICIES),
    "restartPolicyRules": _restart_rules,
    "securityContext": container_security,
    "terminationMessagePolicy": word("", "File", "FallbackToLogsOnError"),
    "volumeDevices": devices,
    "volumeMounts": mounts,
}
_MAIN: Table = {**_COMMON, **PROBES}
_SIDECAR = _MAIN
_INIT: Table = {**_COMMON, **NO_PROBES, "resizePolicy": _init_resize}


def pod_restart_policy(pod: PodCheck) -> None:
    """The policy that the operator gives to the pod."""
    found = value_of(pod.restart_policy)
    if type(found) is str and found and found not in _RESTART_POLICIES:
        unsupported("restartPolicy", pod.restart_policy, _RESTART_POLICIES, pod)
