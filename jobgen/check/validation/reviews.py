"""Validate reviews: questions about tokens and permissions that the API server answers and does not store."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Kind,
    Table,
    Validation,
    find_key,
    is_empty,
    is_set,
    items,
    label_key,
    mapping,
    spec,
    texts,
)
from jobgen.check.admission.names import LABEL_VALUE, is_label_value
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, value_of

# Fields of metadata that the API server empties before it validates.
_EMPTIED = frozenset(
    "creationTimestamp deletionGracePeriodSeconds deletionTimestamp managedFields namespace selfLink uid".split()
)
_NO_VALUE = ("invalid-label", f"`{{}}` is not a valid label value; {LABEL_VALUE}")


def _check_values(requirement: Fields, place: Node, run: Validation) -> None:
    """Check the number of values; the API server lets other operators pass."""
    operator, has_values = as_text(requirement.get("operator")), not is_empty(requirement.get("values"))
    if operator in ("In", "NotIn") and not has_values:
        run.report_missing(f"`operator: {operator}`", requirement, "values", place)
    if operator in ("Exists", "DoesNotExist") and has_values:
        message = f"`values` cannot be set if `operator` is `{operator}`; delete it"
        run.report("invalid-form", message, find_key(requirement, "values", place))


def _check_selector(selector: Fields, place: Node, run: Validation) -> None:
    given = [field for field in ("rawSelector", "requirements") if not is_empty(selector.get(field))]
    if len(given) != 1:
        message = f"`{place}` requires either `requirements` or `rawSelector`; set one of them"
        run.report("invalid-form", message, find_key(selector, "rawSelector", place))


def _review(*, has_subject: bool = True, is_local: bool = False) -> Check:
    """Return a check of a review of access: who asks, for what, and that its metadata is empty."""

    def check(review: Fields, place: Node, run: Validation) -> None:
        given = [key for key in ("resourceAttributes", "nonResourceAttributes") if is_set(review.get(key))]
        if len(given) != 1:
            message = "a review requires either `resourceAttributes` or `nonResourceAttributes`; set one of them"
            run.report("invalid-form", message, find_key(review, "nonResourceAttributes", place))
        elif is_local and given == ["nonResourceAttributes"]:
            message = "`nonResourceAttributes` cannot be in a LocalSubjectAccessReview; use a SubjectAccessReview"
            run.report("invalid-form", message, find_key(review, given[0], place))
        if has_subject and is_empty(review.get("user")) and is_empty(review.get("groups")):
            run.report("missing-field", "a review requires `user` or `groups`; set one of them", place)
        namespace = as_text(run.metadata.get("namespace"))
        attributes = as_mapping(review.get("resourceAttributes"))
        asked = as_text(attributes.get("namespace"))
        # Without a namespace in the manifest, the client decides.
        if is_local and given and namespace and asked != namespace:
            message = f"`namespace` is `{asked}`, but must be that of the review, `{namespace}`"
            run.invalid(message, find_key(attributes, "namespace", place))
        for key, value in run.metadata.items():
            if key not in _EMPTIED and not is_empty(value) and value_of(value) != 0:
                run.report("invalid-form", f"the metadata of a review must be empty; delete `{key}`", key)

    return check


_SELECTORS: Table = {
    "fieldSelector": mapping({"requirements": items("a requirement", {}, "key", _check_values)}, _check_selector),
    "labelSelector": mapping(
        {
            "requirements": items(
                "a requirement",
                {"key": label_key, "values": texts(is_valid=is_label_value, fault=_NO_VALUE)},
                "key",
                _check_values,
            )
        },
        _check_selector,
    ),
}
_REVIEW: Table = {"resourceAttributes": mapping(_SELECTORS)}

KINDS = {
    "LocalSubjectAccessReview": Kind(spec("a review", _REVIEW, _review(is_local=True))),
    "SelfSubjectAccessReview": Kind(spec("a review", _REVIEW, _review(has_subject=False))),
    "SelfSubjectRulesReview": Kind(spec("a SelfSubjectRulesReview", {}, "namespace")),
    "SubjectAccessReview": Kind(spec("a review", _REVIEW, _review())),
    "TokenReview": Kind(spec("a TokenReview", {}, "token")),
}
