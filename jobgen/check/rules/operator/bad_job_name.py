"""Job names that are not valid for a Service."""

from collections.abc import Iterator

from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection
from jobgen.model.lazy_re import lazy_pattern

_fits = lazy_pattern(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")


@rule("job", ERROR)
def bad_job_name(manifest: Manifest) -> Iterator[Violation]:
    """A job name that no Service can have: it starts with a digit, or contains a dot.

    The operator creates a Service for each pod, and the name of a Service must start with a letter and cannot contain
    dots. The webhook rejects such a job; older operators accept it and never start it.

    Use `a-z`, `0-9` and `-`, starting with a letter.
    """
    assert manifest.kind is not None
    if manifest.kind.requirements.names != "service":
        return
    given = manifest.metadata.get("name") or manifest.metadata.get("generateName")
    name = as_text(given)
    whole_name = name if manifest.name else f"{name}aaaaa"
    # The API server rejects a name that no object can have before the operator sees it.
    if name and not _fits.fullmatch(whole_name) and is_dns_subdomain(whole_name):
        yield Violation(given, f"`{name}` must start with a letter and contain no dots; {describe_rejection(manifest)}")
