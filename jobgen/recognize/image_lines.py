"""The images that findings are about, as their lines have them; which are tools, and which OpenShift resolves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.k8s.nodes import as_mapping, get_path
from jobgen.kustomize.resource import read_documents
from jobgen.model.data import text_of, value_of
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.tree import FileTree

IMAGE_RULES = frozenset(("malformed-image", "mutable-image-tag", "stale-image", "untagged-image"))
_YAML = (".yaml", ".yml")
_IMAGE = lazy_pattern(r"""\bimage['"]?\s*:\s*(?:&\S+\s+)?['"]?([^\s'",}]+)""")
_FAR = 12
"""How many lines the image may be away from the pull policy that a finding is about."""

# Images with a shell, a client or nothing, which a pod uses to wait, to copy or to look: any version does it.
_TOOLS = frozenset(
    """alpine amazonlinux aws-cli bash bitnami-shell busybox centos cloud-sdk curl debian docker fedora git kubectl
    netshoot openssl ose-cli pause perl redis-cli rockylinux stress toybox ubi ubi-minimal ubi8 ubi9 ubuntu
    wait-for-it""".split()
)


def read_image(finding: Finding, tree: FileTree) -> str:
    """Return the image that a finding is about, from its line or one near it; empty if no line has one."""
    file, line = finding.location[:2]
    place = (file, line, finding.rule == "stale-image")
    if place not in tree.images:
        tree.images[place] = _search(tree.read_lines(file), line - 1, _FAR if place[2] else 0)
    return tree.images[place]


def _search(lines: Sequence[str], at: int, far: int) -> str:
    for away in range(far + 1):
        for number in (at - away, at + away):
            if 0 <= number < len(lines) and (match := _IMAGE.search(lines[number])):
                return match[1]
    return ""


def is_tool(image: str) -> bool:
    """Return True for an image that holds no work of its own."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0].removeprefix("do-") in _TOOLS


def leave_out_resolved(findings: Sequence[Finding], tree: FileTree) -> Sequence[Finding]:
    """Return the findings without those about images that OpenShift takes from an ImageStream."""
    if not any(finding.rule in IMAGE_RULES for finding in findings):
        return findings
    streams = _list_local_streams(tree)
    return [
        each
        for each in findings
        if each.rule not in IMAGE_RULES
        or not (streams or b"openshift.io/" in tree.read(each.location.file).content)
        or not _is_resolved(each, tree, streams)
    ]


# Annotations because of which OpenShift writes the image of a stream into an object.
_RESOLVING = (b"image.openshift.io/triggers", b"alpha.image.policy.openshift.io/resolve-names")


def _is_resolved(finding: Finding, tree: FileTree, streams: frozenset[str]) -> bool:
    content = tree.read(finding.location.file).content
    image = read_image(finding, tree)
    is_short = bool(image) and "/" not in image
    return is_short and (image.partition(":")[0] in streams or any(text in content for text in _RESOLVING))


def _list_local_streams(tree: FileTree) -> frozenset[str]:
    """Return the names of ImageStreams that pods of their namespace may use as images."""
    found = set()
    for path in tree.list_with(b"lookupPolicy", _YAML):
        for data in read_documents(tree.read(path).content, path, "manifest").data:
            fields: Any = as_mapping(data)
            is_local = value_of(get_path(fields, "spec", "lookupPolicy", "local")) is True
            if is_local and text_of(fields.get("kind")) == "ImageStream":
                found.add(text_of(get_path(fields, "metadata", "name")))
    return frozenset(found)
