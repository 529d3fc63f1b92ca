"""Applications whose project allows neither their source nor their destination: Argo CD syncs none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.model.data import Node, location_of, text_of
from jobgen.model.finding import Finding, Related, Severity
from jobgen.recognize.argo_sources import ArgoSource, is_open
from jobgen.recognize.gitops_objects import ARGO, GitOpsObject, GitOpsTree, read_address
from jobgen.yamlio.read.scalars import quote

RULE = "gitops-project-forbids"
_LOCAL = ("in-cluster", "https://kubernetes.default.svc")


def find_forbidden(tree: GitOpsTree, sources: Iterable[ArgoSource]) -> Iterator[Finding]:
    """Yield the sources and destinations that the project of an Application does not allow."""
    projects: dict[str, list[GitOpsObject]] = {}
    for each in tree.list_kind(ARGO, "AppProject"):
        projects.setdefault(each.name, []).append(each)
    seen: set[Any] = set()
    for source in sources if projects else ():
        named = projects.get(text_of(_read_spec(source.owner).get("project")), ())
        # Two of one name are those of two clusters.
        if len(named) != 1:
            continue
        project = named[0]
        for node, message in (*_check_source(project, source), *_check_destination(project, source)):
            place = location_of(node) or source.owner.location
            if (place, message) not in seen:
                seen.add((place, message))
                related = (Related(project.location, f"the project `{project.name}`"),)
                yield Finding(RULE, "gitops", Severity.ERROR, message, place, related=related)


def _read_spec(owner: GitOpsObject) -> Mapping[str, Any]:
    return owner.spec if owner.kind == "Application" else as_mapping(get_path(owner.spec, "template", "spec"))


def _check_source(project: GitOpsObject, source: ArgoSource) -> Iterator[tuple[Node, str]]:
    patterns = [text_of(each) for each in as_list(project.spec.get("sourceRepos"))]
    if not patterns or not all(patterns) or not source.url or any(map(is_open, (source.url, *patterns))):
        return
    denied = any(_is_address(each[1:], source.url) for each in patterns if each.startswith("!"))
    allowed = any(_is_address(each, source.url) for each in patterns if not each.startswith("!"))
    if denied or not allowed:
        message = (
            f"the project `{project.name}` does not allow the source {quote(source.url)}, so Argo CD syncs nothing of "
            f"`{source.app}`; add it to `sourceRepos` of the project, or choose another project"
        )
        yield source.data.get("repoURL"), message


def _check_destination(project: GitOpsObject, source: ArgoSource) -> Iterator[tuple[Node, str]]:
    wanted = as_mapping(_read_spec(source.owner).get("destination"))
    texts = [text_of(wanted.get(key)) for key in ("namespace", "server", "name")]
    allowed = list(map(as_mapping, as_list(project.spec.get("destinations"))))
    patterns = [text_of(each.get(key)) for each in allowed for key in ("namespace", "server", "name")]
    if not allowed or not texts[0] or not any(texts[1:]) or any(map(is_open, (*texts, *patterns))):
        return
    is_allowed = any(_matches(each, wanted) is not False for each in allowed)
    if is_allowed and not any(_denies(each, wanted) for each in allowed):
        return
    where = texts[1] or texts[2]
    message = (
        f"the project `{project.name}` does not allow the namespace {quote(texts[0])} of {quote(where)}, so Argo CD "
        f"syncs nothing of `{source.app}`; add it to `destinations` of the project, or choose another project"
    )
    yield wanted.get("namespace") or next(iter(wanted.values()), None), message


def _matches(allowed: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool | None:
    """Return True if a destination is an allowed one; None if that is not known, as of the name of a server."""
    namespace = text_of(allowed.get("namespace"))
    if namespace.startswith("!") or not _is_like(namespace, text_of(wanted.get("namespace"))):
        return False
    return _is_cluster(allowed, wanted)


def _is_cluster(allowed: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool | None:
    known = {text_of(wanted.get(key)) for key in ("server", "name")} - {""}
    known |= set(_LOCAL) if known & set(_LOCAL) else set()
    patterns = {key: text_of(allowed.get(key)) for key in ("server", "name")}
    if any(text.startswith("!") for text in patterns.values()):
        return None
    if any(text and _is_like(text, other) for text in patterns.values() for other in known):
        return True
    # A server and the name of a cluster cannot be compared.
    return False if any(patterns[key] and wanted.get(key) for key in patterns) else None


def _denies(allowed: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    namespace = text_of(allowed.get("namespace"))
    is_denied = namespace.startswith("!") and _is_like(namespace[1:], text_of(wanted.get("namespace")))
    return is_denied and _is_cluster(allowed, wanted) is True


def _is_like(pattern: str, text: str) -> bool:
    """Return True if a text has the form of a pattern; also if the pattern is one that is not read."""
    return any(sign in pattern for sign in "[]{}") or fnmatchcase(text, pattern)


def _is_address(pattern: str, url: str) -> bool:
    """Return True if an address may be an allowed one; what `*` stands for in it is not told from a longer path."""
    return _is_like(pattern, url) or _is_like(read_address(pattern), read_address(url)) or pattern == "*"
