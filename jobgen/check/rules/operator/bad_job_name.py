"""A job's name that a Service cannot have."""

from collections.abc import Iterator

from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, as_text
from jobgen.k8s.operators import describe_rejection
from jobgen.model.lazy_re import lazy_pattern

_fits = lazy_pattern(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")


@rule("job", ERROR)
def bad_job_name(manifest: Manifest) -> Iterator[Violation]:
    """A job's name that no Service can have: it begins with a digit, or has a dot.

    The operator makes a Service of each pod's name, and a Service must begin with a letter and cannot have dots. The
    webhook refuses such a job; older operators take it and never start it. Use `a-z`, `0-9` and `-`, a letter first.
    """
    assert manifest.kind is not None
    if manifest.kind.requirements.names != "service":
        return
    given = manifest.metadata.get("name") or manifest.metadata.get("generateName")
    name = as_text(given)
    whole_name = name if manifest.name else f"{name}aaaaa"
    # What no object can be called is refused before any operator sees it.
    if name and not _fits.fullmatch(whole_name) and is_dns_subdomain(whole_name):
        yield Violation(given, f"`{name}` must begin with a letter and have no dots; {describe_rejection(manifest)}")
