"""Job names that are too long for their pods."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import MAX_NAME_LENGTH, find_longest_suffix

# The API server keeps this many characters of `generateName`, and appends random ones.
_PREFIX, _RANDOM = 58, 5


@rule("job", ERROR)
def long_job_name(manifest: Manifest) -> Iterator[Violation]:
    """A job name that is too long for the suffixes of its pods and Services.

    The API server accepts the job but rejects its Services or its JobSet, because `<name>-<role>-<index>` is longer
    than 63 characters, so the job never runs. The maximum depends on the kind, the roles and the number of replicas. It
    is a warning if a runtime that is not known decides about the suffixes.

    Shorten the name.
    """
    assert manifest.kind is not None
    given = manifest.metadata.get("name") or manifest.metadata.get("generateName")
    name = as_text(given)
    length = len(name) if manifest.name else min(len(name), _PREFIX) + _RANDOM
    if length <= MAX_NAME_LENGTH // 2 or not manifest.kind.requirements.names:
        return
    suffix = find_longest_suffix(manifest)
    if length + len(suffix) > MAX_NAME_LENGTH:
        reason = f"`…{suffix}` is appended to it" if suffix else "it is also a label value"
        message = f"the name has {length} characters, but {reason}; use at most {MAX_NAME_LENGTH - len(suffix)}"
        severity = None if _is_suffix_known(manifest) else WARNING
        yield Violation(given, message, severity=severity)


def _is_suffix_known(manifest: Manifest) -> bool:
    """Return True if the suffixes are known; those of a custom runtime are not."""
    assert manifest.kind is not None
    runtimes = manifest.kind.requirements.runtimes
    return not runtimes or as_text(get_path(manifest.spec, "runtimeRef", "name")) in runtimes
