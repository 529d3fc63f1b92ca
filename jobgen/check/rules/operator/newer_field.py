"""A field that the operator does not have yet."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, get_path


@rule("job", ERROR)
def newer_field(manifest: Manifest) -> Iterator[Violation]:
    """A field that came with a later version of the operator than the cluster declares.

    The API server drops it without a word, or refuses the object if the client asks for strictness: a job with
    `suspend: true` starts at once. Leave it out, or have the operator updated.
    """
    kind, declared = manifest.kind, manifest.operator_version
    assert kind is not None
    if not declared or kind.older:
        # Where the schema itself is that of the declared version, it has spoken.
        return
    told: set[tuple[object, ...]] = set()
    for field in kind.fields.values():
        if field.versions.contains(declared) or field.at in told:
            continue
        told.add(field.at)
        *steps, last = map(str, field.at)
        holder = get_path(manifest.object, *steps)
        key = next((key for key in holder if key == last), None) if isinstance(holder, dict) else None
        if key is not None:
            message = f"`{key}` {field.versions} of {kind.operator}, and this cluster has {declared}, which drops it"
            yield Violation(key, message)
