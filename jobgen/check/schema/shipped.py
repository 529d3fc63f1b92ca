"""Find the shipped schema of a kind, for the releases of Kubernetes and of the operator that a cluster has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jobgen.check.schema.admitted import Admission, compile_admission
from jobgen.check.schema.crd_schema import DROPS_STATUS, FOREIGN_PATTERNS, compile_structural
from jobgen.k8s.releases import format_release, parse_release
from jobgen.model.data import Node
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean
from jobgen.schema.history import Schema, contains, describe_range, select_release
from jobgen.schema.shipped_kinds import (
    PLAIN_GROUPS,
    find_known_version,
    find_pod_release,
    find_versions,
    is_of_kubernetes,
    list_shipped_kinds,
    list_versions,
    name_place,
    read_custom,
    select_newest,
    select_releases,
)
from jobgen.schema.types_of_release import DECODED, METADATA, Types, as_crd, read_types
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

_VERSION = lazy_pattern(r"v([0-9]{1,3})(?:(alpha|beta)([0-9]{0,3}))?")
_WORD = lazy_pattern(r"[^./]+")


class MissingKind(NamedTuple):
    """A kind that a cluster does not have: why, the field of the object at fault, and what to write there."""

    message: str
    field: str = "apiVersion"
    replacement: str = ""


class ShippedSchema(NamedTuple):
    """The schema of a kind in a release with the check of objects, or why the release does not have the kind."""

    schema: Schema
    check: Callable[[Mapping[str, Node]], list[Problem]]
    missing: MissingKind | None = None
    is_documented: bool = False
    """Whether the schema comes from documentation and examples, so that the kind may have more fields."""


def find_shipped_schema(
    api_version: str, kind: str, cluster: Cluster, *, any_release: bool = False
) -> ShippedSchema | None:
    """Return the schema of a kind in a cluster; None if jobgen does not ship the kind.

    With `any_release`, a kind that the operator's release does not have gets the schema of the last release with it.
    """
    custom = read_custom(api_version, kind)
    unknown = None if custom else _find_unknown_version(api_version, kind, cluster)
    if unknown:
        return unknown
    return _find(api_version, kind, *select_releases(api_version, kind, cluster), any_release)


def read_shipped_bundle(api_version: str, kind: str, cluster: Cluster, *, any_release: bool = False) -> bytes:
    """Return the schema of a kind in a cluster, with all types that it uses, as JSON; empty if there is none."""
    found = find_shipped_schema(api_version, kind, cluster, any_release=any_release)
    if found is None or found.missing:
        return b""
    return _bundle(api_version, kind, *select_releases(api_version, kind, cluster), any_release)


def find_shipped_admission(api_version: str, kind: str, cluster: Cluster) -> Admission:
    """Return the conversion of objects of a kind to what the API server of a cluster passes to policies."""
    found = find_shipped_schema(api_version, kind, cluster, any_release=True)
    if found is None or found.missing or found.is_documented:
        return compile_admission(None, api_version, kind)
    return _compile_admission(api_version, kind, *select_releases(api_version, kind, cluster))


@lru_cache(maxsize=512)
def _compile_admission(api_version: str, kind: str, kubernetes: str, operator_release: str) -> Admission:
    """Compile a conversion once for all environments with the same releases."""
    found = _find(api_version, kind, kubernetes, operator_release, True)
    return compile_admission(found.schema if found else None, api_version, kind)


@lru_cache(maxsize=64)
def _bundle(api_version: str, kind: str, kubernetes: str, operator_release: str, any_release: bool) -> bytes:
    """Bundle a schema once for all environments with the same releases."""
    from jobgen.check.schema.bundle import bundle_schema

    found = _find(api_version, kind, kubernetes, operator_release, any_release)
    return json.dumps(bundle_schema(found.schema)).encode() if found else b""


@lru_cache(maxsize=512)
def _find(
    api_version: str, kind: str, kubernetes: str, operator_release: str, any_release: bool
) -> ShippedSchema | None:
    custom = read_custom(api_version, kind)
    if custom:
        return _find_custom(custom, operator_release, kubernetes, any_release=any_release)
    return _find_own(api_version, kind, format_release(parse_release(kubernetes)))


def _find_custom(custom: dict[str, Any], release: str, kubernetes: str, *, any_release: bool) -> ShippedSchema:
    if "releases" in custom:
        return _find_foreign(custom, release, kubernetes)
    name, operator = f"`{custom['kind']}` of `{custom['apiVersion']}`", custom["operator"]
    root = custom["schema"]
    if not contains(root, release):
        if not any_release:
            reason = describe_range(root, operator)
            newer = _find_newest(custom)
            hint = f"use `{newer}`" if newer else "this kind has no successor"
            shown = f"the cluster has {operator} {release}" if release else hint
            return _report_missing(MissingKind(f"{name} {reason}; {shown}", replacement="" if release else newer))
        release = custom.get("last", "")
    shipped = _compile(assemble_custom(custom, release), kubernetes)._replace(is_documented="incomplete" in custom)
    return _weaken(shipped) if custom.get("fromDocumentation") else shipped


def _find_foreign(custom: dict[str, Any], declared: str, kubernetes: str) -> ShippedSchema:
    """Return the schema of a kind of an operator of which a cluster may have any release, if none is declared."""
    from jobgen.check.schema.any_release import select_possible_releases

    possible = select_possible_releases(custom, declared)
    having = [release for release in possible if contains(custom["schema"], release)]
    operator, newest = custom["operator"], custom["releases"][-1]
    newer = _find_newest(custom)
    lacks = f"has no `{custom['kind']}` of `{custom['apiVersion']}`" + (f"; use `{newer}`" if newer else "")
    if not having:
        return _report_missing(MissingKind(f"{operator} {declared} {lacks}", replacement=newer))
    shipped = _compile(assemble_custom(custom, *having), kubernetes)._replace(is_documented=True)
    is_newer = declared and parse_version(declared)[:2] > parse_version(newest)[:2]
    if is_newer or custom.get("openForm"):
        return _weaken(shipped)
    if declared or contains(custom["schema"], newest):
        return shipped
    return _warn_of_removal(shipped, MissingKind(f"{operator} {newest} {lacks}", replacement=newer))


def _warn_of_removal(shipped: ShippedSchema, missing: MissingKind) -> ShippedSchema:
    """Report a kind that the newest release does not have: a cluster may have an older one."""
    find_missing = _report_missing(missing).check

    def check(obj: Mapping[str, Node]) -> list[Problem]:
        return [problem._replace(severity=Severity.WARNING) for problem in find_missing(obj)] + shipped.check(obj)

    return shipped._replace(check=check)


def _weaken(shipped: ShippedSchema) -> ShippedSchema:
    """Report warnings: the schema comes from documentation, and what the API server rejects is not known."""

    def check(obj: Mapping[str, Node]) -> list[Problem]:
        return [problem._replace(severity=Severity.WARNING) for problem in shipped.check(obj)]

    return shipped._replace(check=check, is_documented=True)


def _find_newest(custom: Mapping[str, Any]) -> str:
    """The newest version of a custom resource that its operator serves, if there is one."""
    return find_known_version(custom["apiVersion"], custom["kind"])


def _find_unknown_version(api_version: str, kind: str, cluster: Cluster) -> ShippedSchema | None:
    """Report a version that no release of a declared operator has, or that all known releases are too new for."""
    versions = list(list_versions(api_version, kind))
    if any("releases" in one for one in versions):
        return _find_too_old(api_version, kind, versions)
    known = [one for one in versions if cluster.operators.get(one["operator"])]
    newest = select_newest(one for one in known if contains(one["schema"], cluster.operators[one["operator"]]))
    if not newest:
        return None
    operator = next(one["operator"] for one in known if one["apiVersion"] == newest)
    message = f"{operator} {cluster.operators[operator]} has no `{kind}` of `{api_version}`; use `{newest}`"
    return _report_missing(MissingKind(message, replacement=newest))


def _find_too_old(api_version: str, kind: str, known: Sequence[Mapping[str, Any]]) -> ShippedSchema | None:
    """Report a version that is older than all that jobgen knows of a kind; a later release may have a newer one."""
    at = _date_version(api_version)
    if not at or any(_date_version(one["apiVersion"]) <= at for one in known):
        return None
    operator, releases, newer = known[0]["operator"], known[0]["releases"], select_newest(known)
    message = f"no release of {operator} since {releases[0]} has `{kind}` of `{api_version}`; use `{newer}`"
    return _report_missing(MissingKind(message, replacement=newer))


def _date_version(api_version: str) -> tuple[int, ...]:
    """The order in which versions appear: `v1alpha1`, `v1beta1`, `v1`, `v2alpha1`; empty for another name."""
    found = _VERSION.fullmatch(api_version.rpartition("/")[2])
    if not found:
        return ()
    return int(found[1]), ("alpha", "beta", None).index(found[2]), int(found[3] or 0)


# The API server of OpenShift fills in the fields that the CRD requires, before it validates: most manifests lack some.
_FILLED_IN_BY_THE_SERVER = frozenset(("SecurityContextConstraints",))


def assemble_custom(custom: Mapping[str, Any], *releases: str) -> Schema:
    """The schema of a custom resource in a release of its operator; an empty release is the newest.

    Of several releases, it is a schema that accepts what one of them accepts.
    """
    operator = custom["operator"]
    own = {
        name: as_crd(_select(having, node, operator))
        for name, node in custom.get("types", {}).items()
        if (having := [release for release in releases if contains(node, release)])
    }
    schema = as_crd(_select(releases, custom["schema"], operator))
    fields = {
        **schema["properties"],
        "apiVersion": {"enum": [custom["apiVersion"]]},
        "kind": {"enum": [custom["kind"], *custom.get("spellings", ())]},
        # Go decodes the metadata of every object.
        "metadata": {"$ref": f"{DECODED}{METADATA}"},
    }
    has_keys = custom.get("listKeys", True)
    needed = () if custom["kind"] in _FILLED_IN_BY_THE_SERVER else schema.get("required", ())
    required = sorted({*needed, "apiVersion", "kind", "metadata"})
    head: Schema = {"title": custom["kind"], DROPS_STATUS: True}
    head |= {FOREIGN_PATTERNS: True} if "releases" in custom else {}
    whole = {**head, **schema, "type": "object", "required": required, "properties": fields}
    types = Types(find_pod_release(operator, releases[0]), in_crd=True, own=own, has_list_keys=has_keys)
    return {**whole, "$defs": types}


def _select(releases: Sequence[str], node: Schema, operator: str) -> Schema:
    if len(releases) == 1:
        return select_release(node, releases[0], operator)
    from jobgen.check.schema.any_release import select_any

    return select_any(node, releases)


def _find_own(api_version: str, kind: str, release: str) -> ShippedSchema | None:
    """Return the schema of one of Kubernetes' own kinds."""
    group, _, version = api_version.rpartition("/")
    fault = _find_group_fault(api_version)
    if fault:
        newer = _find_similar_version(api_version, kind)
        hint = f"use `{newer}`" if newer else "write a group and a version, such as `example.com/v1`"
        return _report_missing(MissingKind(f"{fault}; {hint}", replacement=newer))
    if not is_of_kubernetes(group):
        return None
    place = f"{name_place(group)}_{version}"
    known = read_types(place)
    name = f"`{kind}` of `{api_version}`"
    if known.get("apiVersion") != api_version:
        return _find_removed(api_version, kind, group)
    if kind not in known["kinds"]:
        hint = did_you_mean(kind, known["kinds"])
        return _report_missing(MissingKind(f"Kubernetes has no kind {name}{hint}", "kind"))
    if not contains(known["types"][kind], release):
        reason = describe_range(known["types"][kind], "Kubernetes")
        return _report_missing(MissingKind(f"{name} {reason}; the cluster has Kubernetes {release}"))
    types = Types(release, in_crd=False)
    return _compile({**types[f"{place}.{kind}"], "title": kind, "$defs": types}, release)


def _find_group_fault(api_version: str) -> str:
    """Say why no cluster can have an apiVersion: its form, or a group that no API has."""
    group, slash, version = api_version.rpartition("/")
    if "/" in group or (slash and not (group and version)):
        return f"`{api_version}` is not an apiVersion, which is a version, or a group, `/` and a version"
    if "." not in group and group not in PLAIN_GROUPS:
        return f"`{group}` is not an API group, and no CustomResourceDefinition can add it without a dot in its name"
    return ""


def _find_similar_version(api_version: str, kind: str) -> str:
    """The apiVersion of a known kind that has most words of another one; empty if several have none."""
    words = set(_WORD.findall(api_version))
    shared = {
        known.api_version: len(words.intersection(_WORD.findall(known.api_version)))
        for known in list_shipped_kinds()
        if known.name == kind
    }
    best = max(shared, key=lambda version: shared[version], default="")
    return best if len(shared) == 1 or shared.get(best) else ""


def _compile(schema: Schema, kubernetes: str) -> ShippedSchema:
    return ShippedSchema(schema, compile_structural(schema, release=parse_release(kubernetes)))


def _report_missing(missing: MissingKind) -> ShippedSchema:
    """Return a check that reports every object of a kind that the cluster does not have."""

    def check(obj: Mapping[str, Node]) -> list[Problem]:
        node = obj.get(missing.field)
        rule = "old-api-version" if missing.field == "apiVersion" else "unknown-kind"
        fix_steps = (FixStep("set", node, missing.replacement),) if missing.replacement else ()
        return [Problem(rule, missing.message, node, category="schema", fix_steps=fix_steps, safe=False)]

    return ShippedSchema({}, check, missing)


def _find_removed(api_version: str, kind: str, group: str) -> ShippedSchema | None:
    from jobgen.k8s.removed_apis import find_removal

    removal = find_removal(api_version, kind)
    if removal is None:
        served = find_versions(group)
        if not served:
            return None
        hint = f"; use `{served[-1]}`"
        return _report_missing(MissingKind(f"Kubernetes has no version `{api_version}`{hint}", replacement=served[-1]))
    release, successor = removal
    message = f"Kubernetes {release} removed `{kind}` of `{api_version}`" + (
        f"; use `{successor}`" if successor else ""
    )
    return _report_missing(MissingKind(message, replacement=successor))
