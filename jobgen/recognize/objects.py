"""Recognize Kubernetes objects among the other YAML and JSON files of a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_closest

# A key that an object has, at any depth: a document may be indented as a whole.
_OBJECT_KEY = lazy_pattern(
    r"^[ \t\-{]*[\"']?(?:api\w*|k\w{2,4}|metadata|spec)[\"']?[ \t]*:|\"(?:api\w*|kind|metadata|spec)\"\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_TOP_KEY = lazy_pattern(rb"^(?:- )?(?:[ \t]{0,8}\{?[ \t]{0,8}\"|[\"']?)(?:apiVersion|kind)[\"']?\s{0,8}:", re.MULTILINE)
# Groups of configuration files, which look like objects and which no API server has.
_LOCAL_GROUPS = frozenset(
    """apiserver.config.k8s.io audit.k8s.io backstage.io builtin chainsaw.kyverno.io cli.kyverno.io ctlptl.dev eksctl.io
    install.istio.io k0sctl.k0sproject.io k3d.io kind.x-k8s.io kops.k8s.io kpt.dev kubeadm.k8s.io kubelet.config.k8s.io
    kubeproxy.config.k8s.io kubescheduler.config.k8s.io kustomize.config.k8s.io kuttl.dev meta.pkg.crossplane.io
    score.dev scorecard.operatorframework.io skaffold tanka.dev""".split()
)
_LOCAL_ANNOTATION = "config.kubernetes.io/local-config"
_TYPO_CUTOFF = 0.8
_FORMAT = lazy_pattern(r"\d+(?:\.\d+)*\Z")
"""The version of a format, which no API has."""


def is_sealed(data: Mapping[str, Any]) -> bool:
    """Return True if SOPS has encrypted even the kind of an object, so that its sort is not known."""
    return str(value_of(data.get("kind"))).startswith("ENC[") and "sops" in data


def begins_object(content: bytes) -> bool:
    """Return True if a line begins with a key of objects, so that a fault in the text is that of an object."""
    return b"\0" in content[:4] or _TOP_KEY.search(content) is not None


def may_hold_objects(content: bytes) -> bool:
    """Return True if a text has a key of an object. Text in another encoding than UTF-8 may hold anything."""
    return b"\0" in content[:4] or _OBJECT_KEY.search(content.decode("latin-1")) is not None


def is_object(data: Mapping[str, Any]) -> bool:
    """Return True if a document is a Kubernetes object, or was meant to be one: it has two of the fields of objects."""
    # Configuration of local tools, such as kustomize and kind, is none.
    if _is_local(data) or ("sops" in data and is_sealed(data)):
        return False
    if "apiVersion" in data and "kind" in data:
        return True
    # Blueprints of authentik and Butane have a `version` of their own format, and metadata.
    is_format = _FORMAT.match(str(value_of(data.get("version")))) is not None
    names = [name for key in data if (name := str(value_of(key))) != "version" or not is_format]
    mappings = sum(isinstance(data.get(name), dict) for name in ("metadata", "spec"))
    return mappings + _has_name(names, "apiVersion") + _has_name(names, "kind") > 1


def _is_local(data: Mapping[str, Any]) -> bool:
    api_version, kind = (str(value_of(data.get(key, ""))) for key in ("apiVersion", "kind"))
    is_kubeconfig = (api_version, kind) == ("v1", "Config")
    if is_kubeconfig or api_version.partition("/")[0] in _LOCAL_GROUPS:
        return True
    metadata = data.get("metadata")
    annotations: Node = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and value_of(annotations.get(_LOCAL_ANNOTATION)) in ("true", True)


def _has_name(names: list[str], wanted: str) -> bool:
    """Return True if there is a name, or one that was probably meant to be it."""
    # Imported late: most names are right.
    from jobgen.model.meant import is_same_name

    return any(is_same_name(name, wanted) for name in names) or bool(find_closest(wanted, names, _TYPO_CUTOFF))
