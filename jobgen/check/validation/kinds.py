"""What is known about validating one kind, and checks that many kinds share."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Validation,
    ValidatorTable,
    dns_label,
    dns_subdomain,
    fields,
    find_key,
    is_set,
    number,
    qualified_name,
)
from jobgen.check.admission.names import SUBDOMAIN_NAME, NameFormat
from jobgen.k8s.nodes import as_integer
from jobgen.k8s.releases import Release
from jobgen.model.data import Node


class Kind(NamedTuple):
    """How objects of a kind are validated; the check gets the whole object."""

    check: Check
    name_format: NameFormat = SUBDOMAIN_NAME
    """The format of the names of its objects."""
    older_name_format: tuple[Release, NameFormat] | None = None
    """The format before a release, if it differs."""


def spec(what: str, table: ValidatorTable, *also: str | Check) -> Check:
    """Return a check of the `spec` of an object, which counts as empty if it is missing."""
    check = fields(what, table, *also)

    def check_spec(obj: Fields, place: Node, run: Validation) -> None:
        check(run.spec, find_key(obj, "spec", obj), run)

    return check_spec


def required_spec(what: str, table: ValidatorTable, *also: str | Check) -> Check:
    """Return a check of the `spec` of an object that cannot be without one."""
    check = spec(what, table, *also)

    def check_spec(obj: Fields, place: Node, run: Validation) -> None:
        if run.spec:
            check(obj, place, run)
        elif isinstance(obj.get("spec"), dict) or not is_set(obj.get("spec")):
            run.report("missing-field", "the object requires `spec`; set it", find_key(obj, "spec", obj))

    return check_spec


def validate_port(key: str, value: Node, owner: Fields, run: Validation) -> None:
    """Validate the number of a port."""
    found = as_integer(value)
    if found is not None and not 0 < found < 65536:
        run.report("invalid-port", f"`{key}` is `{found}`, but must be between 1 and 65535", value)


count = number(0)
object_name = dns_subdomain("invalid-object-name", "object name")
namespace_name = dns_label("invalid-object-name", "namespace name")
label_key = qualified_name("invalid-label", "label key")
api_group = dns_subdomain("invalid-value", "API group", allow_empty=False)
