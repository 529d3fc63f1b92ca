"""Fields newer than the declared operator."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest


@rule("job", ERROR)
def field_newer_than_operator(manifest: Manifest) -> Iterator[Violation]:
    """A field that is newer than the operator version that the cluster declares.

    The API server drops the field without an error, or rejects the object if the client asks for strict validation. For
    example, a job with `suspend: true` starts at once.

    Remove the field, or update the operator.
    """
    kind, declared = manifest.kind, manifest.operator_version
    assert kind is not None
    if not declared or kind.older:
        # The schema is that of the declared version, and reports the field.
        return
    seen: set[tuple[object, ...]] = set()
    for field in kind.fields.values():
        if field.versions.contains(declared) or field.at in seen:
            continue
        seen.add(field.at)
        *steps, last = map(str, field.at)
        holder = get_path(manifest.object, *steps)
        key = next((key for key in holder if key == last), None) if isinstance(holder, dict) else None
        if key is not None:
            message = f"`{key}` {field.versions} of {kind.operator}, but this cluster has {declared}, which drops it"
            yield Violation(key, f"{message}; remove it")
