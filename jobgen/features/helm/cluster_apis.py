"""The version and the APIs of the cluster that a chart is rendered for, which its templates can ask for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from jobgen.features.helm.uses import Use
from jobgen.k8s.kinds import is_served_by_default
from jobgen.repo.shipped import list_shipped_schemas, read_shipped_schema
from jobgen.schema.shipped_kinds import name_type
from jobgen.schema.types_of_release import contains
from jobgen.spec.overlay import Cluster

_OWN, _FOREIGN = "crds", "foreign"
"""The folders of the kinds of operators that run jobs, and of others."""


def set_cluster(uses: Sequence[Use], cluster: Cluster) -> list[Use]:
    """Return uses as they are rendered for a cluster; what an object says of its own release goes first."""
    asked = uses[0].chart.asked_apis if uses else frozenset()
    if not (cluster.kubernetes or cluster.operators or asked):
        return list(uses)
    asks = bool(cluster.operators) and any(b"APIVersions" in content for content in uses[0].chart.files.values())
    apis = (*(_list_apis(cluster, asked) if asks else ()), *sorted(filter(_is_everywhere, asked)))
    return [
        each._replace(kube_version=each.kube_version or cluster.kubernetes, api_versions=each.api_versions or apis)
        for each in uses
    ]


def _is_everywhere(text: str) -> bool:
    """Return True for a kind of Kubernetes: without a cluster, helm knows the versions and not their kinds."""
    api_version, _, kind = text.rpartition("/")
    return bool(name_type(api_version, kind)) and is_served_by_default(api_version)


def may_be_missing(use: Use, api_version: str) -> bool:
    """Return True if a template asks the cluster for a version that helm always has without one, as old as it is."""
    return api_version in use.chart.asked_apis


def _list_apis(cluster: Cluster, asked: Collection[str]) -> Iterator[str]:
    """Yield the versions and kinds of the declared operators, as helm names them: of some, only what is asked for."""
    groups = {each.partition("/")[0] for each in asked}
    folders = [(_OWN, group) for group in list_shipped_schemas(_OWN)]
    folders += [(_FOREIGN, group) for group in list_shipped_schemas(_FOREIGN) if group in groups]
    found: dict[str, None] = {}
    for folder, group in folders:
        for name in list_shipped_schemas(f"{folder}/{group}"):
            known: dict[str, Any] = json.loads(read_shipped_schema(f"{folder}/{group}/{name}") or b"{}")
            release = cluster.operators.get(known.get("operator", ""))
            if release is not None and contains(known["schema"], release):
                found |= dict.fromkeys((known["apiVersion"], f"{known['apiVersion']}/{known['kind']}"))
    yield from found
