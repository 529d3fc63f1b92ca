"""Validate CSINodes."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, iter_items, iter_texts, report_missing, validate_number
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import is_label_key
from jobgen.check.validation.storage._drivers import validate_driver_name
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_MAX_NODE_ID = 256
_validate_count = validate_number(0)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the drivers of a node."""
    names: set[str] = set()
    for driver, node in iter_items("drivers", run.spec.get("drivers")):
        validate_driver_name("a driver", driver, "name", node, run)
        name = as_text(driver.get("name"))
        if name and name in names:
            run.report("duplicate-item", f"two drivers are named `{name}`; delete one of them", driver["name"])
        names.add(name)
        node_id = as_text(driver.get("nodeID"))
        if not node_id:
            report_missing("a driver", driver, "nodeID", node, run)
        elif len(node_id.encode(errors="replace")) > _MAX_NODE_ID:
            message = f"`nodeID` must have at most {_MAX_NODE_ID} characters, got `{len(node_id)}`"
            run.report("out-of-range", message, driver["nodeID"])
        allocatable = as_mapping(driver.get("allocatable"))
        _validate_count("count", allocatable.get("count"), allocatable, run)
        _validate_topology_keys(driver, run)


def _validate_topology_keys(driver: Mapping[str, Node], run: Validation) -> None:
    keys: set[str] = set()
    for key, node in iter_texts(driver.get("topologyKeys")):
        if not is_label_key(key):
            run.report("invalid-label", describe_label_key(key), node)
        elif key in keys:
            run.report("duplicate-item", f"`topologyKeys` contains `{key}` twice; delete one of them", node)
        keys.add(key)
