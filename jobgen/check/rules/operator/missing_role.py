"""Missing roles."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import list_alternatives


@rule("job", ERROR)
def missing_role(manifest: Manifest) -> Iterator[Violation]:
    """A job without a role that its operator requires, or without a role that can complete it.

    Without a required role, such as the Launcher of an MPIJob, nothing is started. Without a role that decides whether
    the job succeeded, as in a TFJob with only parameter servers, the job runs until somebody deletes it, which is a
    warning.

    Add the role.
    """
    kind = manifest.kind
    assert kind is not None
    if kind.shape not in ("map", "list") or not kind.requirements.known:
        return
    present = {role.definition.name for role in manifest.roles if role.definition}
    missing = [value_of(role.spelling) for role in kind.roles.values() if role.required and role.name not in present]
    if not missing and not present.isdisjoint(kind.success or present):
        return
    node = _find_node(manifest)
    if node is None:
        return
    if missing:
        names = list_alternatives(f"`{name}`" for name in missing)
        message = f"the job has no {names}; {describe_rejection(manifest)}; add {'it' if len(missing) == 1 else 'them'}"
        yield Violation(node, message, severity=choose_severity(manifest))
    elif not manifest.roles:
        yield Violation(node, "the job has no roles, so nothing is started; add one")
    elif kind.requirements.unknown_roles == "started":
        names = list_alternatives(f"`{value_of(kind.roles[name].spelling)}`" for name in kind.success)
        yield Violation(node, f"the job has no {names}, so it never completes; add one", severity=WARNING)


def _find_node(manifest: Manifest) -> Node:
    """Return the key of the roles, or the name of an object without a spec; None if the schema reports it."""
    assert manifest.kind is not None
    *steps, last = map(str, manifest.kind.replicas_at)
    holder = get_path(manifest.object, *steps)
    if not isinstance(holder, dict):
        return manifest.metadata.get("name") or manifest.object.get("kind")
    return next((key for key in holder if key == last and value_of(holder[key]) is not None), None)
