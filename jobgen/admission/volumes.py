"""Volumes: a name and one source each."""

from __future__ import annotations

from jobgen.admission.fields import Pod, is_set, mappings, missing, string
from jobgen.admission.names import DNS_LABEL, is_dns_label, is_dns_subdomain
from jobgen.admission.sources import SOURCES
from jobgen.model import Data, bare


def named_volumes(spec: dict[str, Data]) -> dict[str, dict[str, Data]]:
    """The pod's volumes by their names."""
    return {string(volume.get("name")): volume for volume in mappings(spec.get("volumes"))}


def volumes(key: str, value: Data, owner: Data, pod: Pod) -> None:
    """All volumes of the pod."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for volume in value:
        if isinstance(volume, dict):
            _name(volume, names, key, pod)
            _source(volume, pod)


def _name(volume: dict[str, Data], names: set[str], around: str, pod: Pod) -> None:
    name = bare(volume.get("name"))
    if name is None or name == "":
        missing("a volume", volume, "name", around, pod)
    elif type(name) is str:
        if not is_dns_label(name):
            pod.report("invalid-volume-name", f"`{name}` is not a volume's name; {DNS_LABEL}", volume["name"])
        if name in names:
            pod.report("duplicate-volume", f"`{name}` names two volumes", volume["name"])
        names.add(name)


def _source(volume: dict[str, Data], pod: Pod) -> None:
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
    if pod.name and ("ephemeral" in volume or "persistentVolumeClaim" in volume):
        _claim(volume, pod)


def _claim(volume: dict[str, Data], pod: Pod) -> None:
    """The claim that is made for an ephemeral volume is named after the pod and the volume."""
    name = string(volume.get("name"))
    if is_set(volume.get("ephemeral")):
        made = f"{pod.name}-{name}"
        if name and is_dns_label(name) and not is_dns_subdomain(made):
            pod.report("invalid-volume-name", f"`{made}`, the claim of this volume, is too long a name", volume["name"])
        return
    claim = volume.get("persistentVolumeClaim")
    wanted = string(claim.get("claimName")) if isinstance(claim, dict) else ""
    for other, one in pod.volumes.items():
        if wanted == f"{pod.name}-{other}" and is_set(one.get("ephemeral")):
            message = f"`{wanted}` is the claim that is made for the ephemeral volume `{other}`; mount that"
            pod.report("invalid-volume-source", message, claim["claimName"])
