"""Volumes: a name and one source each."""

from __future__ import annotations

from jobgen.check.admission.fields import PodCheck, is_set, missing, string
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain
from jobgen.check.admission.sources import SOURCES
from jobgen.model.data import Data, value_of


def named_volumes(value: Data) -> dict[str, dict[str, Data]]:
    """The pod's volumes by their names."""
    named = {}
    for volume in value if isinstance(value, list) else ():
        if isinstance(volume, dict):
            name = value_of(volume.get("name"))
            if type(name) is str:
                named[name] = volume
    return named


def volumes(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """All volumes of the pod."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for volume in value:
        if isinstance(volume, dict):
            _name(volume, names, key, pod)
            _source(volume, pod)
            if "ephemeral" in volume and is_set(volume["ephemeral"]):
                _ephemeral(string(volume.get("name")), volume, pod)


def _name(volume: dict[str, Data], names: set[str], around: str, pod: PodCheck) -> None:
    name = value_of(volume.get("name"))
    if name is None or name == "":
        missing("a volume", volume, "name", around, pod)
    elif type(name) is str:
        if not is_dns_label(name):
            pod.report("invalid-volume-name", f"`{name}` is not a volume's name; {DNS_LABEL}", volume["name"])
        if name in names:
            pod.report("duplicate-volume", f"`{name}` names two volumes", volume["name"])
        names.add(name)


def _source(volume: dict[str, Data], pod: PodCheck) -> None:
    """The volume's source; without one it is an empty directory."""
    first = ""
    for kind, source in volume.items():
        check = SOURCES.get(kind)
        if check is None or not is_set(source):
            continue
        if first:
            message = f"volume `{string(volume.get('name'))}` has two sources, `{first}` and `{kind}`; keep one of them"
            pod.report("conflicting-volume-source", message, kind)
        else:
            check(kind, source, volume, pod)
        first = kind


def _ephemeral(name: str, volume: dict[str, Data], pod: PodCheck) -> None:
    """The claim that is made for an ephemeral volume is named after the pod and the volume."""
    made = f"{pod.name}-{name}"
    if not pod.name:
        return
    if is_dns_label(name) and not is_dns_subdomain(made):
        message = f"`{made}`, the claim of this volume, is not the name of an object; {DNS_SUBDOMAIN}"
        pod.report("invalid-volume-name", message, volume["name"])
    for other in pod.volumes.values():
        claim = other.get("persistentVolumeClaim")
        if isinstance(claim, dict) and string(claim.get("claimName")) == made:
            message = f"`{made}` is the claim that is made for the ephemeral volume `{name}`; mount that"
            pod.report("invalid-volume-source", message, claim["claimName"])
