"""Complete the catalog of devices with the exported state of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.k8s.device_catalog import DeviceCatalog
from jobgen.k8s.device_claims import build_catalog
from jobgen.model.data import Node
from jobgen.pipeline.exported_state import read_exported
from jobgen.render.config import ProjectConfig
from jobgen.spec.overlay import Cluster


def complete_catalog(objects: Iterable[Mapping[str, Node]], project: ProjectConfig, cluster: Cluster) -> DeviceCatalog:
    """Build the catalog of objects and of those in the exported state of their cluster."""
    exported = list(read_exported(project.root, cluster.state, [])) if cluster.state else ()
    return build_catalog(objects, cluster.gpu_resource, exported)
