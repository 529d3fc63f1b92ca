"""The pod on the network: DNS, host names."""

from __future__ import annotations

from jobgen.check.admission.fields import PodCheck, each, is_empty, mapping_of, missing, strings, text
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    is_dns_label,
    is_dns_subdomain,
    is_ip,
    is_search_domain,
)
from jobgen.model.data import Data, value_of

_DNS = "invalid-dns-config"
_HOST = "invalid-host-name"
_MAX_SERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_LENGTH = 2048

_address = "write it like `10.9.8.7` or `2001:db8::1`"
_domain = text(_DNS, "a domain to search", is_search_domain, "use a name like `example.com`", empty=True)
_nameserver = text(_DNS, "an IP address", is_ip, _address, empty=True)
host_label = text(_HOST, "a host's name", is_dns_label, DNS_LABEL)
_host_domain = text(_HOST, "a host's name", is_dns_subdomain, DNS_SUBDOMAIN, empty=True)

host_aliases = each(
    mapping_of(
        {"ip": text(_HOST, "an IP address", is_ip, _address), "hostnames": each(_host_domain)},
        "ip",
    )
)


def _servers(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(value, list):
        if len(value) > _MAX_SERVERS:
            pod.report(_DNS, f"there are `{len(value)}` nameservers; a pod takes {_MAX_SERVERS}", key)
        for item in value:
            _nameserver(key, item, value, pod)


def _searches(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if not isinstance(value, list):
        return
    length = len(" ".join(found for found, _ in strings(value)))
    if len(value) > _MAX_SEARCHES or length > _MAX_SEARCH_LENGTH:
        limits = f"{_MAX_SEARCHES} of together {_MAX_SEARCH_LENGTH} characters"
        pod.report(
            _DNS, f"there are `{len(value)}` searches of together `{length}` characters; a pod takes {limits}", key
        )
    for item in value:
        _domain(key, item, value, pod)


dns_config = mapping_of({"nameservers": _servers, "searches": _searches, "options": each(mapping_of({}, "name"))})


def dns_policy(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A policy of `None` leaves it all to the configuration."""
    if value_of(value) != "None":
        return
    config = pod.spec.get("dnsConfig")
    if not isinstance(config, dict):
        missing("`dnsPolicy: None`", {}, "dnsConfig", value, pod)
    elif is_empty(config.get("nameservers")):
        missing("`dnsPolicy: None`", config, "nameservers", value, pod)


def hostname_override(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A host name of the pod's own, instead of those that Kubernetes makes."""
    found = value_of(value)
    if type(found) is not str:
        return
    _host_domain(key, value, owner, pod)
    if len(found) > 64:
        pod.report(_HOST, f"`{key}` is `{len(found)}` characters long; a host's name has 64 at most", value)
    for flag in ("setHostnameAsFQDN", "hostNetwork"):
        if pod.says(flag):
            pod.report(_HOST, f"`{key}` cannot be set with `{flag}`", value)
