"""Which releases of operators a repository installs, and so which old versions of their kinds are still served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.kustomize.resource import read_documents
from jobgen.model.data import text_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.tree import FileTree
from jobgen.schema.shipped_kinds import list_versions, read_custom

RULE = "old-api-version"
_YAML = (".yaml", ".yml")
_RELEASE = lazy_pattern(r"v?(\d+)\.(\d+)(?:\.\d+)?(?:[-+][\w.+-]+)?\Z")
_AT_END = lazy_pattern(r"\.(v?\d+\.\d+(?:\.\d+)?(?:[-+][\w.+-]+)?)\Z")

_Release = tuple[int, int]


class _Operator(NamedTuple):
    """What serves a version of an API: the names of its chart and packages, and its last minor release that did."""

    names: tuple[str, ...]
    last: _Release | None


_KARPENTER = ("karpenter",)
_SECRETS = ("external-secrets", "external-secrets-operator")
# From the notes of the releases that dropped them.
_SERVED: Mapping[str, _Operator] = {
    "acme.cert-manager.io/v1alpha2": _Operator(("cert-manager",), (1, 5)),
    "cert-manager.io/v1alpha2": _Operator(("cert-manager",), (1, 5)),
    "cert-manager.io/v1alpha3": _Operator(("cert-manager",), (1, 5)),
    "cert-manager.io/v1beta1": _Operator(("cert-manager",), (1, 5)),
    "external-secrets.io/v1alpha1": _Operator(_SECRETS, (0, 16)),
    "external-secrets.io/v1beta1": _Operator(_SECRETS, (0, 16)),
    "karpenter.k8s.aws/v1alpha1": _Operator(_KARPENTER, (0, 32)),
    "karpenter.k8s.aws/v1beta1": _Operator(_KARPENTER, (1, 0)),
    "karpenter.sh/v1alpha5": _Operator(_KARPENTER, (0, 32)),
    "karpenter.sh/v1beta1": _Operator(_KARPENTER, (1, 0)),
    "traefik.containo.us/v1alpha1": _Operator(("traefik",), (2, 11)),
}
# Packages of OLM that get no further releases in the catalog: a subscription to any channel ends with this one.
_LAST_IN_CATALOG: Mapping[str, _Release] = {"external-secrets-operator": (0, 11)}


def settle_old_versions(findings: Iterable[Finding], tree: FileTree) -> list[Finding]:
    """Return the findings; none about a version that the installed release serves, and infos where it is not known.

    A repository that installs an operator says by its release, its channel or its branch what is served. Without a
    word of it, the newest release is what a new cluster gets.
    """
    left: list[Finding] = []
    known: dict[tuple[str, ...], list[_Release | None]] = {}
    for finding in findings:
        if finding.rule != RULE or finding.severity is not Severity.WARNING or finding.object is None:
            left.append(finding)
            continue
        operator = _find_operator(finding.object.api_version, finding.object.kind)
        if operator.names not in known:
            known[operator.names] = list(_list_installed(tree, operator.names)) if operator.names else []
        installed, last = known[operator.names], operator.last
        if last and installed and all(release is not None and release <= last for release in installed):
            continue
        # A release that is known to be newer makes the statement certain.
        is_open = bool(installed) and not any(release and last and release > last for release in installed)
        left.append(finding._replace(severity=Severity.INFO) if is_open else finding)
    return left


def _find_operator(api_version: str, kind: str) -> _Operator:
    if api_version in _SERVED:
        return _SERVED[api_version]
    known = read_custom(api_version, kind) or next(list_versions(api_version, kind), {})
    name = str(known.get("operator", ""))
    return _Operator((name,) if name else (), None)


def _list_installed(tree: FileTree, names: tuple[str, ...]) -> Iterator[_Release | None]:
    """Yield the releases of an operator that charts, Applications and subscriptions install; None if one is open."""
    for path in tree.list_with(names[0].encode(), _YAML):
        for document in read_documents(tree.read(path).content, path, "manifest").data:
            data = as_mapping(document)
            for name, text in _list_named(data):
                if name in names:
                    yield _parse(text) or _LAST_IN_CATALOG.get(name)


def _list_named(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of what an object installs, each with the text that says which release."""
    kind, spec = text_of(data.get("kind")), as_mapping(data.get("spec"))
    if kind == "HelmRelease":
        chart = as_mapping(get_path(spec, "chart", "spec"))
        yield text_of(chart.get("chart")).rpartition("/")[2], text_of(chart.get("version"))
    elif kind in ("Application", "ApplicationSet"):
        holder = spec if kind == "Application" else as_mapping(get_path(spec, "template", "spec"))
        for source in map(as_mapping, (holder.get("source"), *as_list(holder.get("sources")))):
            name = text_of(source.get("chart")).rpartition("/")[2]
            yield name, text_of(source.get("targetRevision"))
    elif kind == "OCIRepository":
        yield text_of(spec.get("url")).rpartition("/")[2], text_of(get_path(spec, "ref", "tag"))
    elif kind == "Subscription" and text_of(data.get("apiVersion")).startswith("operators.coreos.com/"):
        match = _AT_END.search(text_of(spec.get("startingCSV")))
        yield text_of(spec.get("name")), match[1] if match else ""
    for field in ("helmCharts", "dependencies"):
        for chart in map(as_mapping, as_list(data.get(field))):
            yield text_of(chart.get("name")), text_of(chart.get("version"))


def _parse(text: str) -> _Release | None:
    match = _RELEASE.match(text)
    return (int(match[1]), int(match[2])) if match else None
