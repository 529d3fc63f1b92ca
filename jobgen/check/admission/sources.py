"""Where a volume's files come from: one check for each kind of source."""

from __future__ import annotations

import re

from jobgen.check.admission.claims import ephemeral
from jobgen.check.admission.environment import file_field_ref, file_resource_ref
from jobgen.check.admission.fields import (
    Check,
    PodCheck,
    Table,
    both,
    each,
    is_empty,
    is_set,
    mapping_of,
    mappings,
    number,
    require,
    string,
    text,
    word,
    written,
)
from jobgen.check.admission.mounts import file_path, inner_path
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, climbs, is_dns_label, is_dns_subdomain
from jobgen.check.admission.resources import quantity
from jobgen.model.data import Data, value_of
from jobgen.model.lazy_re import lazy_pattern

_RULE = "invalid-volume-source"
_IQN = lazy_pattern(r"iqn\.[0-9]{4}-[0-9]{2}\.[-.A-Za-z0-9]+:[^,;*&$|\t\n\f\r ]+\Z")
_OTHER_IQN = lazy_pattern(r"(?:eui.[A-Za-z0-9]{16}|naa.[A-Za-z0-9]{32})\Z")
_PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
_HOST_TYPES = tuple("DirectoryOrCreate Directory FileOrCreate File Socket CharDevice BlockDevice".split())

_mode = number(0, 0o777)
_label = text(_RULE, "a name here", is_dns_label, DNS_LABEL)
_subdomain = text("invalid-object-name", "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN)
_byte = number(0, 255)
_iqn = text(
    _RULE,
    "a name of iSCSI",
    lambda name: bool(_IQN.match(name) or _OTHER_IQN.match(name)),
    "use `iqn.`, `eui.` or `naa.`",
)
_named_secret = mapping_of({}, "name")


def _host_path(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if climbs(string(value)):
        pod.report("invalid-volume-path", f"`{key}` is `{value_of(value)}`; it must not have `..` in it", value)


def _absolute(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    path = string(value)
    if path and not path.startswith("/"):
        pod.report("invalid-volume-path", f"`{key}` is `{path}`; it must be an absolute path", value)


def _file(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    """A key of a ConfigMap or a Secret as a file."""
    if isinstance(item, dict):
        _FILE(key, item, owner, pod)
        require("an item", item, ("key", "path"), key, pod)


def _downward_file(key: str, item: Data, owner: Data, pod: PodCheck) -> None:
    """A field of the pod as a file."""
    if not isinstance(item, dict):
        return
    _DOWNWARD_FILE(key, item, owner, pod)
    require("an item", item, ("path",), key, pod)
    given = written(item, ("fieldRef", "resourceFieldRef"))
    if len(given) != 1:
        message = "an item needs `fieldRef` or `resourceFieldRef`, and only one of them"
        pod.report(_RULE, message, given[-1] if given else item or key)


_FILE = mapping_of({"path": file_path, "mode": _mode})
_DOWNWARD_FILE = mapping_of(
    {"path": file_path, "mode": _mode, "fieldRef": file_field_ref, "resourceFieldRef": file_resource_ref}
)
_FILES: Table = {"items": each(_file), "defaultMode": _mode}
_DOWNWARD: Table = {"items": each(_downward_file), "defaultMode": _mode}


def _flex_options(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    for option in value if isinstance(value, dict) else ():
        domain = f".{option.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            pod.report(_RULE, f"option `{option}` is in a domain of Kubernetes' own", option)


def _iscsi(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    chap = [name for name in ("chapAuthDiscovery", "chapAuthSession") if value_of(value.get(name)) is True]
    if chap and not is_set(value.get("secretRef")):
        pod.report(_RULE, f"`{chap[0]}` needs a `secretRef`", value[chap[0]])
    place = f"{string(owner.get('name'))}:{string(value.get('targetPortal'))}"
    if is_set(value.get("initiatorName")) and len(place) > 64:
        message = f"`{place}` is longer than 64 characters, which `initiatorName` does not allow"
        pod.report(_RULE, message, owner.get("name") or key)


def _fc(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    targets, wwids = (not is_empty(value.get(name)) for name in ("targetWWNs", "wwids"))
    if targets == wwids:
        pod.report(_RULE, "`fc` needs `targetWWNs` or `wwids`, and only one of them", key)
    if targets:
        require("`fc` with `targetWWNs`", value, ("lun",), key, pod)
        _byte("lun", value.get("lun"), value, pod)


def _flocker(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    name, uuid = string(value.get("datasetName")), string(value.get("datasetUUID"))
    if bool(name) == bool(uuid):
        pod.report(_RULE, "`flocker` needs `datasetName` or `datasetUUID`, and only one of them", key)
    if "/" in name:
        pod.report(_RULE, f"`datasetName` is `{name}`; it must not have `/` in it", value["datasetName"])


def _quobyte(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    registry, tenant = string(value.get("registry")), string(value.get("tenant"))
    if registry and len(tenant) > 64:
        pod.report(_RULE, "`tenant` is longer than 64 characters", value["tenant"])
    elif registry and not all(re.fullmatch(r"(\[[^][]*\]|[^][:]*):[^][:]*", pair) for pair in registry.split(",")):
        message = f"`registry` is `{registry}`; it must be pairs like `host:port`, with commas between"
        pod.report(_RULE, message, value["registry"])


def _azure_disk(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    # The kind left out is `Shared`, a blob.
    begin = "/subscriptions/" if string(value.get("kind")) == "Managed" else "https://"
    uri = string(value.get("diskURI"))
    if uri and not uri.startswith(begin):
        pod.report(_RULE, f"`diskURI` is `{uri}`; for this kind of disk it begins with `{begin}`", value["diskURI"])


def _driver(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    name = string(value)
    if name and not (len(name) <= 63 and is_dns_subdomain(name.lower())):
        pod.report(_RULE, f"`{name}` is not the name of a driver; use at most 63 characters of a domain's", value)


def _projected(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Files from several sources must not be in each other's way."""
    paths: set[str] = set()
    for source in mappings(value.get("sources")):
        given = written(source, _PROJECTIONS)
        if len(given) > 1:
            listed = " and ".join(f"`{name}`" for name in given)
            pod.report("conflicting-volume-source", f"a projection has two sources, {listed}", given[-1])
        for part in (source[name] for name in given):
            for item in mappings(part.get("items") if isinstance(part, dict) else None):
                path = string(item.get("path"))
                if path and path in paths:
                    pod.report(_RULE, f"`{path}` is written by two items of the volume", item["path"])
                paths.add(path)


_PROJECTIONS: Table = {
    "secret": mapping_of({"items": each(_file)}, "name"),
    "configMap": mapping_of({"items": each(_file)}, "name"),
    "downwardAPI": mapping_of({"items": each(_downward_file)}),
    "serviceAccountToken": mapping_of({"expirationSeconds": number(600, 1 << 32), "path": file_path}, "path"),
}


def _source(table: Table, *needed: str, also: Check | None = None) -> Check:
    """A check for a source: fields by the table, those it needs, and how they go together."""
    fields = mapping_of(table, *needed)

    def whole(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        if also is not None and isinstance(value, dict):
            also(key, value, owner, pod)

    return both(fields, whole) if also else fields


SOURCES: Table = {
    "emptyDir": _source({"sizeLimit": quantity}),
    "hostPath": _source({"path": _host_path, "type": word("", *_HOST_TYPES)}, "path"),
    "persistentVolumeClaim": _source({}, "claimName"),
    "configMap": _source(_FILES, "name"),
    "secret": _source(_FILES, "secretName"),
    "downwardAPI": _source(_DOWNWARD),
    "projected": _source({"defaultMode": _mode, "sources": each(mapping_of(_PROJECTIONS))}, also=_projected),
    "nfs": _source({"path": _absolute}, "server", "path"),
    "ephemeral": _source({"volumeClaimTemplate": ephemeral}, "volumeClaimTemplate"),
    "csi": _source({"driver": _driver, "nodePublishSecretRef": mapping_of({"name": _subdomain}, "name")}, "driver"),
    "image": _source({"pullPolicy": word(*_PULL_POLICIES)}, "reference"),
    "gitRepo": _source({"directory": inner_path}, "repository"),
    "iscsi": _source({"iqn": _iqn, "initiatorName": _iqn, "lun": _byte}, "targetPortal", "iqn", also=_iscsi),
    "fc": _source({}, also=_fc),
    "glusterfs": _source({}, "endpoints", "path"),
    "rbd": _source({}, "monitors", "image"),
    "cephfs": _source({}, "monitors"),
    "cinder": _source({"secretRef": _named_secret}, "volumeID"),
    "flocker": _source({}, also=_flocker),
    "quobyte": _source({}, "registry", "volume", also=_quobyte),
    "flexVolume": _source({"options": _flex_options}, "driver"),
    "gcePersistentDisk": _source({"partition": _byte}, "pdName"),
    "awsElasticBlockStore": _source({"partition": _byte}, "volumeID"),
    "azureFile": _source({}, "secretName", "shareName"),
    "azureDisk": _source(
        {"cachingMode": word("None", "ReadOnly", "ReadWrite"), "kind": word("Shared", "Dedicated", "Managed")},
        "diskName",
        "diskURI",
        also=_azure_disk,
    ),
    "vsphereVolume": _source({}, "volumePath"),
    "photonPersistentDisk": _source({}, "pdID"),
    "portworxVolume": _source({}, "volumeID"),
    "scaleIO": _source({}, "gateway", "system", "volumeName"),
    "storageos": _source({"volumeName": _label, "volumeNamespace": _label, "secretRef": _named_secret}, "volumeName"),
}
