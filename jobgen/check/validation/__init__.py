"""Validate objects of Kubernetes' own kinds as the API server of Kubernetes does, beyond their schema.

Each kind has a module `<group>/<kind>.py` with a function `validate`; `core` is the group without a name. A module is
imported when the first object of its kind is validated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import SUBDOMAIN_NAME, NameFormat
from jobgen.check.admission.object_metadata import MetadataFormat
from jobgen.k8s.builtin_groups import BUILTIN_GROUPS
from jobgen.k8s.device_catalog import CatalogSource, no_catalog
from jobgen.k8s.kind_scopes import CLUSTER_SCOPED
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.releases import NEWEST_RELEASE, Release
from jobgen.model.data import Node
from jobgen.model.finding import Problem

# Kinds whose finalizers need no domain: the API server validates their metadata as that of custom resources.
_GROUPS_WITH_ANY_FINALIZER = frozenset(
    """admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io coordination.k8s.io node.k8s.io
    policy""".split()
)
_ANY_FINALIZER = frozenset(("Event", "PodTemplate"))
# Kinds whose objects get a new `generation`, whatever the manifest says.
_GROUPS_WITH_GENERATION = frozenset(("admissionregistration.k8s.io", "apiextensions.k8s.io"))
_WITH_GENERATION = frozenset(
    """CronJob DaemonSet Deployment DeviceClass DeviceTaintRule EndpointSlice FlowSchema Ingress IngressClass Job
    NetworkPolicy Pod PodDisruptionBudget PodTemplate PriorityClass PriorityLevelConfiguration ReplicaSet
    ReplicationController ResourceSlice StatefulSet""".split()
)


class KindValidation(Protocol):
    """The module of a kind."""

    NAME_FORMAT: NameFormat
    """The format of the names of its objects, if it differs from that of most kinds."""

    def choose_name_format(self, release: Release) -> NameFormat:
        """Return the format of names, in place of `NAME_FORMAT`, if it depends on the release."""

    def validate(self, obj: Mapping[str, Node], run: Validation) -> None:
        """Report the problems for which the API server rejects the object."""


def validate_object(
    obj: Mapping[str, Node], release: Release, read_catalog: CatalogSource = no_catalog
) -> list[Problem]:
    """Return the problems for which a release of Kubernetes rejects an object of one of its own kinds.

    `read_catalog` reads what is known of the cluster's devices.
    """
    module = find_validation(obj)
    if module is None:
        return []
    run = Validation(
        as_mapping(obj.get("metadata")),
        as_mapping(obj.get("spec")),
        [],
        release=release,
        category="schema",
        read_catalog=read_catalog,
    )
    module.validate(obj, run)
    return run.problems


def find_name_format(obj: Mapping[str, Node], release: Release = NEWEST_RELEASE) -> NameFormat:
    """Return the format of the names of an object's kind."""
    module = find_validation(obj)
    if module is not None and hasattr(module, "choose_name_format"):
        return module.choose_name_format(release)
    return getattr(module, "NAME_FORMAT", SUBDOMAIN_NAME)


def find_metadata_format(obj: Mapping[str, Node], release: Release = NEWEST_RELEASE) -> MetadataFormat:
    """Return what the metadata of an object's kind must fulfill."""
    group, kind = as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))
    is_builtin = group in BUILTIN_GROUPS
    return MetadataFormat(
        find_name_format(obj, release),
        is_namespaced=kind not in CLUSTER_SCOPED,
        qualifies_finalizers=is_builtin and group not in _GROUPS_WITH_ANY_FINALIZER and kind not in _ANY_FINALIZER,
        keeps_generation=is_builtin and group not in _GROUPS_WITH_GENERATION and kind not in _WITH_GENERATION,
    )


def find_validation(obj: Mapping[str, Node]) -> KindValidation | None:
    """Return the module that validates objects of this kind, if there is one."""
    return _import_module(as_text(obj.get("apiVersion")), as_text(obj.get("kind")))


@lru_cache(maxsize=512)
def _import_module(api_version: str, kind: str) -> KindValidation | None:
    name = (_name_package(api_version.rpartition("/")[0]), kind.lower())
    return cast(KindValidation, import_module(f"{__name__}.{'.'.join(name)}")) if name in _list_modules() else None


def _name_package(group: str) -> str:
    """Return the package of a group: its name without the domain of Kubernetes."""
    if not group:
        return "core"
    name, _, domain = group.partition(".")
    return name if not domain or f".{domain}".endswith(".k8s.io") else ""


@cache
def _list_modules() -> frozenset[tuple[str, str]]:
    """Return the packages and names of all modules of kinds."""
    root = Path(__file__).parent
    folders = [name for name in os.listdir(root) if "." not in name and not name.startswith("_")]
    return frozenset(
        (folder, file.removesuffix(".py"))
        for folder in folders
        for file in os.listdir(root / folder)
        if file.endswith(".py") and not file.startswith("_")
    )
