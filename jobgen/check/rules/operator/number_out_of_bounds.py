"""Numbers out of range."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import choose_severity


@rule("job", ERROR)
def number_out_of_bounds(manifest: Manifest) -> Iterator[Violation]:
    """A number that the operator does not support, such as a deadline of zero seconds.

    CRDs accept any number. A job with a negative `activeDeadlineSeconds` or `backoffLimit` fails as soon as it starts,
    and one with a negative `ttlSecondsAfterFinished` is deleted as soon as it ends; mpi-operator rejects all of them.

    Use a number within the bounds that the message names.
    """
    assert manifest.kind is not None
    for place, bounds in manifest.kind.requirements.bounds.items():
        holder = get_path(manifest.object, *place)
        if not isinstance(holder, dict):
            continue
        for key in holder:
            bound = bounds.get(key)
            number = as_integer(holder[key]) if bound is not None else None
            if bound is None or number is None:
                continue
            if bound.minimum is not None and number < bound.minimum:
                wanted = f"at least {bound.minimum}"
            elif bound.maximum is not None and number > bound.maximum:
                wanted = f"at most {bound.maximum}"
            else:
                continue
            yield Violation(holder[key], f"`{key}` must be {wanted}, got {number}", severity=choose_severity(manifest))
