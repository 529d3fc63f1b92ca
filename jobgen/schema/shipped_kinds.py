"""The kinds whose schemas are shipped: those of Kubernetes, of the operators that run jobs, and of other operators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from jobgen.k8s.kinds import format_release, parse_release
from jobgen.model.data import value_of
from jobgen.model.finding import Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.repo.shipped import list_shipped_schemas, read_shipped_schema
from jobgen.schema.types_of_release import Schema, contains, read_types
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

FOLDERS = ("crds", "foreign")
"""The folders of custom resources: of the operators that run jobs, and of other operators."""
PLAIN_GROUPS = frozenset(("", "apps", "autoscaling", "batch", "policy", "extensions"))
"""The groups of Kubernetes without a dot in their names."""


def is_shipped_kind(api_version: str, kind: str) -> bool:
    """Return True if any release has a kind, and jobgen ships its schema."""
    return bool(read_custom(api_version, kind) or name_type(api_version, kind))


def name_type(api_version: str, kind: str) -> str:
    """Return the name of the type of one of Kubernetes' own kinds, such as `core_v1.Pod`; empty for other kinds."""
    group, _, version = api_version.rpartition("/")
    place = f"{name_place(group)}_{version}"
    known = read_types(place) if is_of_kubernetes(group) else {}
    return f"{place}.{kind}" if known.get("apiVersion") == api_version and kind in known["kinds"] else ""


@lru_cache(maxsize=512)
def read_custom(api_version: str, kind: str) -> dict[str, Any]:
    """Read the file of a custom resource; empty if there is none."""
    group, _, version = api_version.rpartition("/")
    for folder in FOLDERS if group else ():
        content = read_shipped_schema(f"{folder}/{group}/{kind.lower()}_{version}.json")
        known: dict[str, Any] = json.loads(content) if content is not None else {}
        if "schema" in known:
            return known
    return {}


def select_releases(api_version: str, kind: str, cluster: Cluster) -> tuple[str, str]:
    """Return the releases that decide about the schema of a kind: of Kubernetes, and of the operator of the kind."""
    return cluster.kubernetes, cluster.operators.get(read_custom(api_version, kind).get("operator", ""), "")


def find_known_version(api_version: str, kind: str) -> str:
    """The newest version of a custom resource whose schema is shipped; empty if there is none."""
    return select_newest(known for known in list_versions(api_version, kind) if contains(known["schema"], ""))


def select_newest(versions: Iterable[Mapping[str, Any]]) -> str:
    """The newest of some versions of a custom resource; empty if there are none."""
    return max((known["apiVersion"] for known in versions), key=_rank_version, default="")


def list_versions(api_version: str, kind: str) -> Iterator[dict[str, Any]]:
    """The files of a custom resource in all versions of its group."""
    group, stem = api_version.rpartition("/")[0], f"{kind.lower()}_"
    for name in (name for folder in FOLDERS for name in _list_group(folder, group)):
        if name.startswith(stem):
            yield read_custom(f"{group}/{name.removesuffix('.json').removeprefix(stem)}", kind)


def _list_group(folder: str, group: str) -> list[str]:
    """The names of the files of a group; empty if a folder does not have the group."""
    return list_shipped_schemas(f"{folder}/{group}") if group in list_shipped_schemas(folder) else []


def is_known_elsewhere(api_version: str, kind: str) -> bool:
    """Return True if an operator that runs jobs has the group, or any version of another operator has the kind."""
    return bool(_list_group(FOLDERS[0], api_version.rpartition("/")[0])) or any(list_versions(api_version, kind))


def name_plural(api_version: str, kind: str) -> str:
    """The name of a custom resource in paths; empty for other kinds."""
    return str(read_custom(api_version, kind).get("plural", ""))


@cache
def find_custom_versions(group: str, plural: str) -> frozenset[str]:
    """The versions of a custom resource whose schemas are shipped, by its name in paths."""
    files = (json.loads(read_shipped_schema(f"crds/{group}/{name}") or b"{}") for name in _list_group("crds", group))
    return frozenset(file["apiVersion"].rpartition("/")[2] for file in files if file.get("plural") == plural)


@cache
def _read_operators() -> dict[str, dict[str, str]]:
    """Read the releases of operators, the oldest and the newest that jobgen knows among them, and their Kubernetes."""
    found: dict[str, dict[str, str]] = json.loads(read_shipped_schema("operators.json") or b"{}")
    return found


def find_unknown_releases(cluster: Mapping[str, Any]) -> Iterator[Problem]:
    """Find declared versions of operators whose minor release is older or newer than all that jobgen knows."""
    kueue, operators = cluster.get("kueue", {}), cluster.get("operators", {})
    for name, node in (("kueue", kueue.get("version")), *operators.items()):
        releases = [(*parse_version(each), 0, 0)[:2] for each in _read_operators().get(str(value_of(name)), ())]
        at = (*parse_version(str(value_of(node))), 0, 0)[:2]
        if node is None or not releases or releases[0] <= at <= releases[-1]:
            continue
        oldest, newest = (".".join(map(str, each)) for each in (releases[0], releases[-1]))
        checked = oldest if at < releases[0] else newest
        message = Sentence(
            "jobgen knows {} {} to {}, so `{}` is checked as {}",
            value_of(name),
            oldest,
            newest,
            value_of(node),
            checked,
        )
        problem = Sentence("{}; correct the version, or update jobgen", message)
        yield Problem("unknown-release", problem, node, severity=Severity.WARNING)


@cache
def find_pod_release(operator: str, release: str) -> str:
    """Return the release of Kubernetes whose pods a release of an operator embeds."""
    minors = _read_operators().get(operator, {})
    known = [minor for since, minor in minors.items() if not release or parse_version(since) <= parse_version(release)]
    return (known or [*minors.values()][:1] or [""])[-1] if release else (known or [""])[-1]


def is_of_kubernetes(group: str) -> bool:
    """Return True if a group is one of Kubernetes itself, by its name."""
    return group in PLAIN_GROUPS or group.endswith(".k8s.io")


def name_place(group: str) -> str:
    """The name of a group in the names of the files of types."""
    return "apiserverinternal" if group == "internal.apiserver.k8s.io" else group.partition(".")[0] or "core"


def find_versions(group: str) -> list[str]:
    """Return the versions of a group of Kubernetes that jobgen knows, the most stable one last."""
    short = name_place(group)
    names = list_shipped_schemas("kubernetes")
    places = [name.removesuffix(".json") for name in names if name.startswith(f"{short}_v")]
    found = [known["apiVersion"] for place in places if (known := read_types(place)).get("apiVersion")]
    return sorted(
        (api for api in found if api.rpartition("/")[0] == group),
        key=lambda api: ("alpha" not in api, "beta" not in api, api),
    )


class ShippedKind(NamedTuple):
    """A kind whose schema is shipped, and what defines it: Kubernetes, or the name of an operator."""

    api_version: str
    name: str
    source: str
    since: str = ""
    """The first release of its source that has it; empty if all known ones before `until` do."""
    until: str = ""

    @property
    def is_stable(self) -> bool:
        """Return True if its version is neither alpha nor beta."""
        return all(_rank_version(self.api_version)[:2])

    def is_served(self, cluster: Cluster) -> bool:
        """Return True if a cluster has it."""
        range_ = {word: value for word, value in (("since", self.since), ("until", self.until)) if value}
        if self.source == "kubernetes":
            return contains(range_, format_release(parse_release(cluster.kubernetes)))
        return contains(range_, cluster.operators.get(self.source, ""))


def list_shipped_kinds() -> Iterator[ShippedKind]:
    """Yield the kinds of Kubernetes, the most stable version of each first, and of the operators that run jobs."""
    types = [read_types(name.removesuffix(".json")) for name in list_shipped_schemas("kubernetes")]
    groups = {known["apiVersion"]: known for known in types if "apiVersion" in known}
    for api_version in sorted(groups, key=_rank_version, reverse=True):
        known = groups[api_version]
        for kind in known["kinds"]:
            yield ShippedKind(api_version, kind, "kubernetes", *_read_range(known["types"][kind]))
    yield from _list_custom_kinds("crds")


def list_foreign_kinds() -> Iterator[ShippedKind]:
    """Yield the kinds of other operators."""
    yield from _list_custom_kinds("foreign")


def _list_custom_kinds(folder: str) -> Iterator[ShippedKind]:
    for group in list_shipped_schemas(folder):
        for name in list_shipped_schemas(f"{folder}/{group}"):
            known = json.loads(read_shipped_schema(f"{folder}/{group}/{name}") or b"{}")
            yield ShippedKind(known["apiVersion"], known["kind"], known["operator"], *_read_range(known["schema"]))


def _read_range(node: Schema) -> tuple[str, str]:
    return node.get("since", ""), node.get("until", "")


def rank_kind(kind: ShippedKind) -> tuple[bool, bool, str]:
    """The order of the versions of a kind, the most stable one last."""
    return _rank_version(kind.api_version)


def _rank_version(api_version: str) -> tuple[bool, bool, str]:
    return "alpha" not in api_version, "beta" not in api_version, api_version
