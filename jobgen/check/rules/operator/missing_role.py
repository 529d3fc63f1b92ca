"""A job without a role that it cannot do without."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, get_path
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import Data, value_of


@rule("job", ERROR)
def missing_role(manifest: Manifest) -> Iterator[Violation]:
    """A job without the role that its operator requires, or without any that can end it.

    Without a required role, such as the Launcher of an MPIJob, nothing is started. Without a role that decides whether
    the job has succeeded, as in a TFJob with parameter servers alone, it is never done.
    """
    kind = manifest.kind
    assert kind is not None
    if kind.shape not in ("map", "list") or not kind.requirements.known:
        return
    present = {role.definition.name for role in manifest.roles if role.definition}
    missing = [value_of(role.spelling) for role in kind.roles.values() if role.required and role.name not in present]
    if not missing and not present.isdisjoint(kind.success or present):
        return
    blame = _blame(manifest)
    if blame is None:
        return
    if missing:
        message = f"there is no `{'`, `'.join(missing)}`; {describe_rejection(manifest)}"
        yield Violation(blame, message, severity=choose_severity(manifest))
    elif not manifest.roles:
        yield Violation(blame, "the job has no roles, so nothing is started")
    elif kind.requirements.unknown_roles == "started":
        words = " or ".join(f"`{value_of(kind.roles[name].spelling)}`" for name in kind.success)
        yield Violation(blame, f"there is no {words}, so the job is never done", severity=WARNING)


def _blame(manifest: Manifest) -> Data:
    """The key of the roles, or what there is of an object without a spec; nothing where the schema has spoken."""
    assert manifest.kind is not None
    *steps, last = map(str, manifest.kind.replicas_at)
    holder = get_path(manifest.object, *steps)
    if not isinstance(holder, dict):
        return manifest.metadata.get("name") or manifest.object.get("kind")
    return next((key for key in holder if key == last and value_of(holder[key]) is not None), None)
