"""A job's name without room for the names of its pods."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_text, get_path
from jobgen.k8s.operators import MAX_NAME_LENGTH, find_longest_suffix

# The server keeps so much of `generateName`, and adds five letters.
_PREFIX, _RANDOM = 58, 5


@rule("job", ERROR)
def long_job_name(manifest: Manifest) -> Iterator[Violation]:
    """A job's name that leaves no room for what the operator appends for its pods and Services.

    The job is accepted; then its Services, or its JobSet, are refused, because `<name>-<role>-<index>` is longer than
    63 characters, and it never runs. How much room there is depends on the kind, the roles and the number of replicas.
    """
    assert manifest.kind is not None
    given = manifest.metadata.get("name") or manifest.metadata.get("generateName")
    name = as_text(given)
    length = len(name) if manifest.name else min(len(name), _PREFIX) + _RANDOM
    if length <= MAX_NAME_LENGTH // 2 or not manifest.kind.requirements.names:
        return
    suffix = find_longest_suffix(manifest)
    if length + len(suffix) > MAX_NAME_LENGTH:
        word = f"`…{suffix}` follows it" if suffix else "it is also a label"
        message = f"the name has {length} characters; {word}, so there is room for {MAX_NAME_LENGTH - len(suffix)}"
        yield Violation(given, message, severity=None if _certain(manifest) else WARNING)


def _certain(manifest: Manifest) -> bool:
    """Whether the names are known: those of another's runtime are not."""
    assert manifest.kind is not None
    runtimes = manifest.kind.requirements.runtimes
    return not runtimes or as_text(get_path(manifest.spec, "runtimeRef", "name")) in runtimes
