"""Find the shipped schema of a kind, for the releases of Kubernetes and of the operator that a cluster has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from jobgen.check.schema.admitted import Admission, compile_admission
from jobgen.check.schema.crd_schema import DROPS_STATUS, FOREIGN_PATTERNS, compile_structural
from jobgen.k8s.kinds import BUILTIN_GROUPS, NEWEST_RELEASE, format_release, is_served_by_default, parse_release
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, node_at
from jobgen.model.sentence import Sentence, Words, fault_of
from jobgen.model.suggest import did_you_mean
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
from jobgen.schema.types_of_release import (
    CHILDREN,
    DECODED,
    METADATA,
    RANGE,
    Schema,
    Types,
    as_crd,
    contains,
    describe_range,
    read_types,
    select_release,
    select_words,
)
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

_VERSION = lazy_pattern(r"v([0-9]{1,3})(?:(alpha|beta)([0-9]{0,3}))?")
_WORD = lazy_pattern(r"[^./]+")


class MissingKind(NamedTuple):
    """A kind that a cluster does not have: why, the field of the object at fault, and what to write there."""

    message: Words
    field: str = "apiVersion"
    replacement: str = ""


class ShippedSchema(NamedTuple):
    """The schema of a kind in a release with the check of objects, or why the release does not have the kind."""

    schema: Schema
    check: Callable[[Mapping[str, Plain]], list[Problem]]
    missing: MissingKind | None = None
    is_documented: bool = False
    """True if the schema comes from documentation and examples, so that the kind may have more fields."""


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
            newer = find_known_version(custom["apiVersion"], custom["kind"])
            if release:
                every = list_versions(custom["apiVersion"], custom["kind"])
                same = (one for one in every if one["operator"] == operator)
                newer = select_newest(one for one in same if contains(one["schema"], release))
            shown = f"; the cluster has {operator} {release}" if release else ""
            hint = f"; use `{newer}`" if newer else "" if release else "; this kind has no successor"
            return _report_missing(Sentence("{} {}{}{}", name, reason, shown, hint), replacement=newer)
        release = custom.get("last", "")
    shipped = _compile(assemble_custom(custom, release), kubernetes)._replace(is_documented="incomplete" in custom)
    return _weaken(shipped) if custom.get("fromDocumentation") else shipped


def _find_foreign(custom: dict[str, Any], declared: str, kubernetes: str) -> ShippedSchema:
    """Return the schema of a kind of an operator of which a cluster may have any release, if none is declared."""
    possible = select_possible_releases(custom, declared)
    having = [release for release in possible if contains(custom["schema"], release)]
    operator, newest = custom["operator"], custom["releases"][-1]
    newer = find_known_version(custom["apiVersion"], custom["kind"])
    lacks = f"has no `{custom['kind']}` of `{custom['apiVersion']}`" + (f"; use `{newer}`" if newer else "")
    if not having:
        return _report_missing(Sentence("{} {} {}", operator, declared, lacks), replacement=newer)
    shipped = _compile(assemble_custom(custom, *having), kubernetes)._replace(is_documented=True)
    is_newer = declared and parse_version(declared)[:2] > parse_version(newest)[:2]
    if is_newer or custom.get("openForm"):
        return _weaken(shipped)
    if declared:
        return shipped
    shipped = _doubt_newer(shipped, custom)
    if contains(custom["schema"], newest):
        return shipped
    # The newest release does not have the kind, but a cluster may have an older one.
    missing = _weaken(_report_missing(Sentence("{} {} {}", operator, newest, lacks), replacement=newer))
    return shipped._replace(check=lambda obj: missing.check(obj) + shipped.check(obj))


# Values that another operator adds to a list of the CRD that it finds, by the group.
_ADDED_VALUES: Mapping[str, Mapping[str, str]] = {
    "notification.toolkit.fluxcd.io": dict.fromkeys(
        ("FluxInstance", "ResourceSet", "ResourceSetInputProvider"), "flux-operator"
    )
}


def _doubt_newer(shipped: ShippedSchema, custom: Mapping[str, Any]) -> ShippedSchema:
    """Report an unknown field as an info, unless it is a known one in a wrong place or with a typo.

    No release is declared, and a release that is newer than all that jobgen knows may have the field.
    """
    operator, newest = custom["operator"], custom["releases"][-1]
    added = _ADDED_VALUES.get(custom["apiVersion"].rpartition("/")[0], {})

    def settle(problem: Problem, obj: Mapping[str, Plain]) -> Problem:
        if problem.rule == "unknown-field":
            is_at_top = type(problem.node) is At and problem.node.holder is obj
            return problem if is_at_top or _is_meant(problem, shipped.schema) else doubt(problem)
        value = str(node_at(problem.node)) if problem.rule == "invalid-value" else ""
        if value not in added:
            return problem
        message = Sentence(
            "`{}` is a value that {} adds to the CRD; without it, the API server refuses it", value, added[value]
        )
        return problem._replace(sentence=message, severity=Severity.INFO, fix_steps=())

    def doubt(problem: Problem) -> Problem:
        message = Sentence(
            "{} in {} {}, the newest release that jobgen knows; if the cluster has a newer one, declare it as "
            "`cluster.operators.{}`, else remove the field",
            fault_of(problem.sentence),
            operator,
            newest,
            operator,
        )
        return problem._replace(sentence=message, severity=Severity.INFO, fix_steps=())

    def check(obj: Mapping[str, Plain]) -> list[Problem]:
        return [settle(problem, obj) for problem in shipped.check(obj)]

    return shipped._replace(check=check)


def _is_meant(problem: Problem, schema: Schema) -> bool:
    """Return True if a known field is meant: a similar one of its mapping, or the only one of its name elsewhere."""
    if problem.fix_steps or problem.meant:
        return True
    # Imported late: most objects are valid.
    from jobgen.check.schema.field_locations import locate_fields

    return problem.evidence is not None and len(locate_fields(schema).get(str(node_at(problem.node)), ())) == 1


def _weaken(shipped: ShippedSchema) -> ShippedSchema:
    """Report warnings: the schema comes from documentation, and what the API server rejects is not known."""

    def check(obj: Mapping[str, Plain]) -> list[Problem]:
        return [problem._replace(severity=Severity.WARNING) for problem in shipped.check(obj)]

    return shipped._replace(check=check, is_documented=True)


def _find_unknown_version(api_version: str, kind: str, cluster: Cluster) -> ShippedSchema | None:
    """Report a version that no release of a declared operator has, or that all known releases are too new for."""
    versions = list(list_versions(api_version, kind))
    if any("releases" in one for one in versions):
        # It may be older than all that jobgen knows; a later release may have a newer one.
        at = _date_version(api_version)
        if not at or any(_date_version(one["apiVersion"]) <= at for one in versions):
            return None
        operator, releases, newer = versions[0]["operator"], versions[0]["releases"], select_newest(versions)
        message = Sentence(
            "no release of {} since {} has `{}` of `{}`; use `{}`", operator, releases[0], kind, api_version, newer
        )
        return _report_missing(message, replacement=newer)
    known = [one for one in versions if cluster.operators.get(one["operator"])]
    newest = select_newest(one for one in known if contains(one["schema"], cluster.operators[one["operator"]]))
    if not newest:
        return None
    operator = next(one["operator"] for one in known if one["apiVersion"] == newest)
    message = Sentence(
        "{} {} has no `{}` of `{}`; use `{}`", operator, cluster.operators[operator], kind, api_version, newest
    )
    return _report_missing(message, replacement=newest)


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
    # This kind has no subresource, so the API server keeps and validates its status.
    is_kept = (custom["apiVersion"], custom["kind"]) == ("scheduling.volcano.sh/v1beta1", "PodGroup")
    head: Schema = {"title": custom["kind"], **({} if is_kept else {DROPS_STATUS: True})}
    head |= {FOREIGN_PATTERNS: True} if "releases" in custom else {}
    whole = {**head, **schema, "type": "object", "required": required, "properties": fields}
    types = Types(find_pod_release(operator, releases[0]), in_crd=True, own=own, has_list_keys=has_keys)
    return {**whole, "$defs": types}


def _select(releases: Sequence[str], node: Schema, operator: str) -> Schema:
    return select_release(node, releases[0], operator) if len(releases) == 1 else select_any(node, releases)


def _find_own(api_version: str, kind: str, release: str) -> ShippedSchema | None:
    """Return the schema of one of Kubernetes' own kinds."""
    group, _, version = api_version.rpartition("/")
    if fault := _find_fault(api_version, kind):
        return fault
    if not is_of_kubernetes(group):
        return None
    place = f"{name_place(group)}_{version}"
    known = read_types(place)
    name = f"`{kind}` of `{api_version}`"
    if known.get("apiVersion") != api_version:
        return _find_group(api_version, kind, release) or _find_removed(api_version, kind, group)
    if kind not in known["kinds"]:
        return _report_kind(api_version, kind, release, known["kinds"])
    if not contains(known["types"][kind], release):
        reason, served = describe_range(known["types"][kind], "Kubernetes"), _find_served(group, kind, release)
        hint = f"; use `{served}`" if served else ""
        return _report_missing(
            Sentence("{} {}; the cluster has Kubernetes {}{}", name, reason, release, hint), replacement=served
        )
    types = Types(release, in_crd=False)
    compiled = _compile({**types[f"{place}.{kind}"], "title": kind, "$defs": types}, release)
    is_served = is_served_by_default(api_version)
    return compiled if is_served else _warn_disabled(compiled, api_version, kind, release)


def _find_fault(api_version: str, kind: str) -> ShippedSchema | None:
    """Return a check that reports an apiVersion that no cluster can have; None for any other."""
    group, slash, version = api_version.rpartition("/")
    if "/" in group or (slash and not (group and version)):
        fault = f"`{api_version}` is not an apiVersion"
    elif "." not in group and group not in PLAIN_GROUPS:
        fault = f"`{group}` is not an API group of Kubernetes, and a group that a CRD adds has a dot in its name"
    else:
        return None
    newer = _find_similar(api_version, kind)
    hint = f"use `{newer}`" if newer else "write a group and a version, such as `example.com/v1`"
    return _report_missing(Sentence("{}; {}", fault, hint), replacement=newer)


def _report_kind(api_version: str, kind: str, release: str, known: list[str]) -> ShippedSchema:
    """Return a check that reports a kind that a group of Kubernetes does not have, with the group that has it."""
    group, name = api_version.rpartition("/")[0], f"`{kind}` of `{api_version}`"
    if served := _find_served(group, kind, release):
        return _report_missing(Sentence("Kubernetes has no {}; use `{}`", name, served), replacement=served)
    served = _find_in_other_group(kind, release) or ("" if group else _find_similar(api_version, kind))
    if served:
        return _report_missing(Sentence("Kubernetes has no kind {}; use `{}`", name, served), replacement=served)
    # Imported late: most kinds are right.
    from jobgen.model.meant import find_meant

    message = Sentence("Kubernetes has no kind {}{}", name, did_you_mean(kind, known))
    return _report_missing(message, "kind", find_meant(kind, known))


def _find_group(api_version: str, kind: str, release: str) -> ShippedSchema | None:
    """Return a check that reports a group without its version, as `batch`; None for anything else."""
    served = _find_served(api_version, kind, release) or _find_similar(api_version, kind)
    if not served.startswith(f"{api_version}/"):
        return None
    message = Sentence("`{}` is a group without a version; use `{}`", api_version, served)
    return _report_missing(message, replacement=served)


def _find_similar(api_version: str, kind: str) -> str:
    """Return the apiVersion of a known kind that has most of the same words; empty if none has any."""
    words = set(_WORD.findall(api_version))
    shared = {
        known.api_version: len(words.intersection(_WORD.findall(known.api_version)))
        for known in list_shipped_kinds()
        if known.name == kind
    }
    best = max(shared, key=lambda version: shared[version], default="")
    return best if len(shared) == 1 or shared.get(best) else ""


def _warn_disabled(compiled: ShippedSchema, api_version: str, kind: str, release: str) -> ShippedSchema:
    """Return a check that also warns of a version that a server of this release does not serve by default."""
    served = _find_served(api_version.partition("/")[0], kind, release)
    shown = release or format_release(NEWEST_RELEASE)
    hint = f"use `{served}`" if served else f"turn it on with `--runtime-config={api_version}=true`"
    message = f"Kubernetes {shown} does not serve `{kind}` of `{api_version}` by default; {hint}"

    def check(obj: Mapping[str, Plain]) -> list[Problem]:
        place = At(obj, "apiVersion")
        steps = (FixStep("set", place, served),) if served else ()
        warning = Problem("old-api-version", message, place, category="schema", severity=Severity.WARNING)
        return [*compiled.check(obj), warning._replace(fix_steps=steps, safe=False)]

    return compiled._replace(check=check)


def _find_served(group: str, kind: str, release: str) -> str:
    """Return the newest version of a kind that a server of a release serves by default; empty if there is none."""
    versions = [each for each in find_versions(group) if is_served_by_default(each)]
    known = [read_types(f"{name_place(group)}_{each.rpartition('/')[2]}")["types"].get(kind) for each in versions]
    served = [each for each, ages in zip(versions, known, strict=True) if ages and contains(ages, release)]
    return max(served, key=_date_version, default="")


def _find_in_other_group(kind: str, release: str) -> str:
    """Return the version of the only group that has a kind; empty if none has it, or more."""
    found = [served for group in sorted(BUILTIN_GROUPS) if (served := _find_served(group, kind, release))]
    return found[0] if len(found) == 1 else ""


def _compile(schema: Schema, kubernetes: str) -> ShippedSchema:
    return ShippedSchema(schema, compile_structural(schema, release=parse_release(kubernetes)))


def _report_missing(message: Words, field: str = "apiVersion", replacement: str = "") -> ShippedSchema:
    """Return a check that reports every object of a kind that the cluster does not have."""

    def check(obj: Mapping[str, Plain]) -> list[Problem]:
        place = At(obj, field)
        rule = "old-api-version" if field == "apiVersion" else "unknown-kind"
        fix_steps = (FixStep("set", place, replacement),) if replacement else ()
        return [Problem(rule, message, place, category="schema", fix_steps=fix_steps, safe=field == "kind")]

    return ShippedSchema({}, check, MissingKind(message, field, replacement))


def _find_removed(api_version: str, kind: str, group: str) -> ShippedSchema | None:
    from jobgen.k8s.kinds import find_removal

    removal = find_removal(api_version, kind)
    if removal is None:
        served = find_versions(group)
        if not served:
            return None
        message = Sentence("Kubernetes has no version `{}`; use `{}`", api_version, served[-1])
        return _report_missing(message, replacement=served[-1])
    release, successor = removal
    hint = f"; use `{successor}`" if successor else ""
    message = Sentence("Kubernetes {} removed `{}` of `{}`{}", release, kind, api_version, hint)
    return _report_missing(message, replacement=successor)


_OPEN = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: Schema = {_OPEN: True}
# A keyword of a pair means nothing, or something else, without the other one.
_PAIRS = (
    ("minimum", "exclusiveMinimum"),
    ("maximum", "exclusiveMaximum"),
    ("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)
# Where releases differ in one of these, the forms of a value have nothing in common.
_FORMS = ("$ref", "type", "x-kubernetes-int-or-string")


def select_possible_releases(custom: Mapping[str, Any], declared: str) -> list[str]:
    """Return the releases of a file that a cluster may have: all, or the one that is declared.

    Of a declared release that the file does not have, it is the release before it and the release after it.
    """
    known: list[str] = custom["releases"]
    if not declared:
        return [release for release in known if contains(custom["schema"], release)]
    at = parse_version(declared)
    same = [release for release in known if parse_version(release)[:2] == at[:2]]
    if same:
        return [release for release in same if parse_version(release) <= at][-1:] or same[:1]
    around = [pair for pair in pairwise(known) if parse_version(pair[0]) < at < parse_version(pair[1])]
    return list(around[0]) if around else known[:1] if at < parse_version(known[0]) else known[-1:]


def select_any(node: Schema, releases: Sequence[str]) -> Schema:
    """Return the schema that accepts what one of the releases accepts, from a schema with the history of all."""
    own = {word: value for word, value in node.items() if word not in (*RANGE, *CHILDREN, "releases", "properties")}
    entries = node.get("releases", ())
    variants = [select_words(own, entries, release) for release in releases] if entries else [own]
    selected = unite(list({json.dumps(variant): variant for variant in variants}.values()))
    selected = {**selected, **{word: select_any(node[word], releases) for word in CHILDREN if word in node}}
    if "properties" in node:
        is_open = [bool(variant.get(_OPEN)) for variant in variants] * (1 if entries else len(releases))
        selected["properties"] = dict(_select_fields(node["properties"], dict(zip(releases, is_open, strict=True))))
    return selected


def _select_fields(fields: Mapping[str, Schema], is_open: Mapping[str, bool]) -> Iterator[tuple[str, Schema]]:
    """The fields of all releases; an open release accepts any value of a field that it does not list."""
    for name, child in fields.items():
        having = [release for release in is_open if contains(child, release)]
        if any(is_open[release] for release in is_open if release not in having):
            yield name, _ANYTHING
        elif having:
            yield name, select_any(child, having)


def unite(schemas: Sequence[Schema]) -> Schema:
    """Return a schema that accepts every value that one of the schemas accepts."""
    first = schemas[0]
    if all(schema == first for schema in schemas):
        return first
    if any(schema.get(word) != first.get(word) for word in _FORMS for schema in schemas):
        return _ANYTHING
    united = {word: value for word, value in first.items() if all(schema.get(word) == value for schema in schemas)}
    for pair in _PAIRS:
        if any(schema.get(word) != first.get(word) for word in pair for schema in schemas):
            united = {word: value for word, value in united.items() if word not in pair}
    for word in ("nullable", _OPEN):
        if any(schema.get(word) for schema in schemas):
            united[word] = True
    if all("enum" in schema for schema in schemas):
        united["enum"] = [
            value
            for at, schema in enumerate(schemas)
            for value in schema["enum"]
            if not any(value in earlier["enum"] for earlier in schemas[:at])
        ]
    shared = set[str].intersection(*(set(schema.get("required", ())) for schema in schemas))
    united |= {"required": sorted(shared)} if shared else {}
    return united | _unite_children(schemas)


def _unite_children(schemas: Sequence[Schema]) -> Schema:
    """The parts of a united schema that are schemas; a mapping whose fields one release does not list has any."""
    united: Schema = {}
    for word in CHILDREN:
        children = [schema[word] for schema in schemas if isinstance(schema.get(word), dict)]
        if len(children) == len(schemas):
            united[word] = unite(children)
        elif children:
            united |= _ANYTHING
    listed = [schema["properties"] for schema in schemas if "properties" in schema]
    if len(listed) == len(schemas):
        opened = [schema["properties"] for schema in schemas if schema.get(_OPEN)]
        united["properties"] = {
            name: unite([fields[name] for fields in listed if name in fields])
            if all(name in fields for fields in opened)
            else _ANYTHING
            for name in sorted({name for fields in listed for name in fields})
        }
    elif listed:
        united |= _ANYTHING
    return united


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CHILDREN_BUNDLE = ("items", "additionalProperties", "not")
_LISTS = ("allOf", "anyOf", "oneOf")


def bundle_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a JSON Schema that refers to nothing outside of it."""
    types = schema["$defs"]
    names: dict[str, str] = {}
    waiting = [{word: value for word, value in schema.items() if word != "$defs"}]
    root = waiting[0]
    for node in waiting:
        for name in _find_references(node):
            if name not in names:
                # The last part of a name, or all of it if another type has that.
                short = name.removeprefix(DECODED).rpartition(".")[2]
                names[name] = short if short not in names.values() else name.replace(":", ".")
                waiting.append(types[name])
    found = {short: _convert(types[name], names) for name, short in sorted(names.items(), key=lambda item: item[1])}
    return {"$schema": DIALECT, **_convert(root, names), "$defs": found}


def _find_references(node: Any) -> Iterator[str]:
    if "$ref" in node:
        yield node["$ref"]
    single = [node[word] for word in _CHILDREN_BUNDLE if isinstance(node.get(word), dict)]
    listed = [child for word in _LISTS for child in node.get(word, ())]
    for child in (*node.get("properties", {}).values(), *single, *listed):
        yield from _find_references(child)


def _convert(node: Schema, names: Mapping[str, str]) -> Schema:
    """A node with references to its own bundle, and with null where Kubernetes drops or keeps it."""
    if "$ref" in node:
        kept = {word: value for word, value in node.items() if word != "nullable"}
        kept["$ref"] = f"#/$defs/{names[node['$ref']]}"
        return allow_null(kept) if node.get("nullable") else kept
    kept = {word: value for word, value in node.items() if not word.startswith("x-jobgen-")}
    required = node.get("required", ())
    if "properties" in node:
        fields = {name: _convert(child, names) for name, child in node["properties"].items()}
        kept["properties"] = {name: child if name in required else allow_null(child) for name, child in fields.items()}
    for word in _CHILDREN_BUNDLE:
        if isinstance(node.get(word), dict):
            kept[word] = _convert(node[word], names)
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = allow_null(kept["additionalProperties"])
    kept |= {word: [_convert(child, names) for child in node[word]] for word in _LISTS if word in node}
    return allow_null(kept) if node.get("nullable") else kept


def allow_null(schema: Schema) -> Schema:
    """A schema that also accepts null."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if schema.get("enum"):
        return schema if None in schema["enum"] else {**schema, "enum": [*schema["enum"], None]}
    if "type" not in schema:
        return schema
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema if "null" in kinds else {**schema, "type": [*kinds, "null"]}
