"""Problems of a pod that are about what its role does not have: a template, or an image that another role has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.objects import Role
from jobgen.model.data import Plain, TracedScalar
from jobgen.model.finding import Problem
from jobgen.model.place import find_at, identify
from jobgen.model.sentence import Sentence

_FIELDS = ("image", "command", "args")


def place_in_role(problems: list[Problem], role: Role) -> list[Problem]:
    """Return the problems of a pod of a role; those of what is not there at the role."""
    if role.pod.template:
        return [_explain_missing_image(problem, role) for problem in problems]
    # An empty template has no location itself.
    place = find_at(role.replica_spec, "template", is_key=True) or role.place
    prefix = f"role `{role.replica_type}`: "
    return [
        problem._replace(node=place, at=None, sentence=Sentence("{}{}", prefix, problem.sentence))
        for problem in problems
    ]


def _explain_missing_image(problem: Problem, role: Role) -> Problem:
    """Return a problem of a missing image at the role that lacks it, with the role that has one; others as they are."""
    main = _find_main(role)
    if identify(problem.node) != identify(main) or main.get("image"):
        return problem
    for other in role.manifest.roles:
        found = _find_main(other)
        if other is role or not found.get("image"):
            continue
        lacking = [field for field in _FIELDS if field in found and field not in main]
        fields, them = " and no ".join(f"`{field}`" for field in lacking), "it" if len(lacking) == 1 else "them"
        message = f"role `{role.name}` has no {fields}, and only `{other.name}` has {them}; move {them} to `spec`"
        return problem._replace(at=role.place, finish=partial(_explain_added, message))
    return problem


def _explain_added(message: str, problem: Problem, is_spec: bool) -> Problem:
    """Return the problem of a container with locations: with a message about its role if the kind has added it."""
    name = as_mapping(problem.node).get("name")
    is_added = type(name) is TracedScalar and name.layer.startswith("kind ")
    return problem._replace(sentence=message) if is_added else problem._replace(at=None)


def _find_main(role: Role) -> Mapping[str, Plain]:
    containers = as_list(role.pod.spec.get("containers"))
    return as_mapping(containers[0]) if containers else {}
