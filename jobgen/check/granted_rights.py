"""What a rule of a role names in vain: groups, resources and verbs that no request to the API server has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.check.admission.fields import Fields, list_text_places
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.place import At
from jobgen.model.sentence import Sentence, Words
from jobgen.schema.resource_names import find_group, find_meant_resource, list_groups

_RULE = "unknown-resource"
_CORE = '""'
_VERSION = lazy_pattern(r"v[0-9]{1,3}(?:(?:alpha|beta)[0-9]{1,3})?\Z")
_VERBS = "create delete deletecollection get list patch update watch".split()
_OTHER_VERBS = frozenset("approve attest bind escalate impersonate sign use".split())
_WORDS = {
    "add": "create",
    "annotate": "get, patch",
    "apply": "create, get, patch",
    "describe": "get, list",
    "edit": "get, patch, update",
    "fetch": "get",
    "label": "get, patch",
    "modify": "patch, update",
    "post": "create",
    "put": "update",
    "read": "get, list, watch",
    "remove": "delete",
    "scale": "get, patch",
    "view": "get, list, watch",
    "write": "create, patch, update",
    **{f"{verb}{'es' if verb.endswith('ch') else 's'}": verb for verb in _VERBS},
}
"""Words for verbs that are none."""
_POD_PARTS = "attach binding ephemeralcontainers eviction exec log portforward proxy resize status".split()


def find_vain_rights(rule: Fields) -> Iterator[Problem]:
    """Report what a rule of a role names in vain; names of groups that are not known are not checked."""
    names = [(name, place) for name, place in list_text_places(rule.get("resources")) if "$" not in name]
    groups = [*list_text_places(rule.get("apiGroups"))]
    if not names or not groups or any("$" in group for group, _ in groups):
        return
    meant = [_find_group(group, [name for name, _ in names]) for group, _ in groups]
    for (group, place), right in zip(groups, meant, strict=True):
        if right != group:
            yield _report(
                Sentence("{}, so it grants nothing; write `{}`", _describe_group(group), right or _CORE), place
            )
    for name, place in names:
        yield from _judge_resource(name, place, meant)
    if all(group in list_groups() for group in meant):
        yield from _judge_verbs(rule)


def _find_group(group: str, names: Sequence[str]) -> str:
    """Return the group that a rule means, which is the one that it names if this may be one."""
    named, _, version = group.rpartition("/")
    if _VERSION.match(version):
        return named if named not in ("", "core") else find_group([name.partition("/")[0] for name in names])
    if group == "core":
        return ""
    # Those of custom resources have a dot.
    is_known = "." in group or group in ("", "*", "extensions")
    return group if is_known else find_meant(group, [each for each in list_groups() if "." not in each]) or group


def _describe_group(group: str) -> str:
    if "/" in group:
        return f"`{group}` is a group and its version, and a role names the group alone"
    if _VERSION.match(group):
        return f"`{group}` is a version, and a role names groups"
    return f"`{group}` is not a group of the API server"


def _judge_resource(name: str, place: At, groups: Sequence[str]) -> Iterator[Problem]:
    base, slash, part = name.partition("/")
    right = find_meant_resource(base, groups)
    if right is None:
        part_meant = find_meant(part, _POD_PARTS) if base == "pods" and "" in groups and part not in ("", "*") else ""
        if part_meant:
            yield _report(
                Sentence("`pods` have no `{}`, so it grants nothing; write `pods/{}`", part, part_meant), place
            )
        return
    wanted = f"{right.resource}{slash}{part}"
    if right.group in groups:
        yield _report(
            Sentence("no request has the resource `{}`, so it grants nothing; write `{}`", name, wanted), place
        )
        return
    also = "" if base == right.resource else f", and write `{wanted}`"
    group = right.group or _CORE
    yield _report(
        Sentence("`{}` is of the group `{}`, which the rule does not name; add it to `apiGroups`{}", name, group, also),
        place,
    )


def _judge_verbs(rule: Fields) -> Iterator[Problem]:
    for verb, place in list_text_places(rule.get("verbs")):
        if verb in _VERBS or verb in _OTHER_VERBS:
            continue
        right = _WORDS.get(verb.lower()) or find_meant(verb, _VERBS)
        if right:
            yield _report(
                Sentence("no request has the verb `{}`, so it grants nothing; write `{}`", verb, right), place
            )


def _report(message: Words, place: At) -> Problem:
    return Problem(_RULE, message, place, severity=Severity.WARNING)
