"""What an object does against rules of CRDs whose own messages name no value: which value it is, and what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.place import At, Entry, Place, at_value

_Words = Callable[[Plain, Entry], Iterator[tuple[str, Place]]]


def explain_rule(text: str, value: Plain, entry: Entry) -> list[tuple[str, Place]]:
    """Return what breaks a rule with this text: a message and its place for each fault; empty if the text must do."""
    find = next((words for start, words in _WORDS.items() if text.startswith(start)), None)
    return list(find(value, entry)) if find else []


def _find_name(holder: Mapping[str, Plain]) -> Place:
    return At(holder, "name") if "name" in holder else None


def _find_uncovered(group: Plain, _: Entry) -> Iterator[tuple[str, Place]]:
    """Compare the resources of each flavor with those that its group covers."""
    covered = [as_text(node) for node in as_list(as_mapping(group).get("coveredResources"))]
    for flavor in map(as_mapping, as_list(as_mapping(group).get("flavors"))):
        name, resources = as_text(flavor.get("name")), [as_mapping(each) for each in as_list(flavor.get("resources"))]
        own = [as_text(each.get("name")) for each in resources]
        missing = [f"`{each}`" for each in covered if each not in own]
        if missing:
            message = f"flavor `{name}` has no quota for {' and '.join(missing)}, which `coveredResources` lists"
            yield f"{message}; add it to `resources` of the flavor", _find_name(flavor)
        for each in resources:
            if as_text(each.get("name")) not in covered:
                message = f"flavor `{name}` has a quota for `{as_text(each.get('name'))}`"
                advice = "add it to `coveredResources`, or remove the quota"
                yield f"{message}, which `coveredResources` does not list; {advice}", _find_name(each)


def _find_borrowing(spec: Plain, _: Entry) -> Iterator[tuple[str, Place]]:
    """Find the limits on borrowing of a queue that has no cohort to borrow from."""
    fields = as_mapping(spec)
    for group in map(as_mapping, as_list(fields.get("resourceGroups"))):
        for flavor in map(as_mapping, as_list(group.get("flavors"))):
            for resource in map(as_mapping, as_list(flavor.get("resources"))):
                place = At(resource, "borrowingLimit", is_key=True)
                if resource.get("borrowingLimit") is not None:
                    message = f"`borrowingLimit` of `{as_text(resource.get('name'))}` needs a cohort to borrow from"
                    yield f"{message}; set the cohort of the queue, or remove the limit", place


def _find_both(*names: str) -> _Words:
    def find(holder: Plain, _: Entry) -> Iterator[tuple[str, Place]]:
        fields: Mapping[str, Plain] = as_mapping(holder)
        found = [key for key in fields if key in names and fields[key] is not None]
        if len(found) > 1:
            listed = " and ".join(f"`{key}`" for key in found)
            yield f"{listed} cannot be set together; remove one of them", At(fields, found[-1], is_key=True)

    return find


def _find_dependent(spec: Plain, _: Entry) -> Iterator[tuple[str, Place]]:
    for job in map(as_mapping, as_list(as_mapping(spec).get("replicatedJobs"))):
        if "dependsOn" in job:
            message = "`dependsOn` and `startupPolicy` cannot be used together; remove one of them"
            yield message, At(job, "dependsOn", is_key=True)
            return


def _choose(name: str, *choices: str) -> _Words:
    *others, last = choices
    listed = f"{', '.join(others)} or {last}"

    def find(value: Plain, entry: Entry) -> Iterator[tuple[str, Place]]:
        found: list[tuple[Plain, Place]]
        if isinstance(value, list):
            # A rule for all items of a list.
            holders = [item for item in map(as_mapping, value) if f"`{item.get(name)}`" not in choices]
            found = [(item[name], At(item, name)) for item in holders if item.get(name) is not None]
        elif isinstance(value, dict):
            found = [(value[name], At(value, name))] if value.get(name) is not None else []
        else:
            found = [(value, at_value(value, entry))]
        for node, place in found:
            yield f"`{name}` is `{node}`, and must be {listed}", place

    return find


_WORDS: dict[str, _Words] = {
    "flavors must have the same number of resources as the coveredResources": _find_uncovered,
    "borrowingLimit must be nil when cohort is empty": _find_borrowing,
    "Only one of the policy can be configured": _find_both("torch", "mpi", "jax", "flux", "xgboost"),
    "StartupPolicy and DependsOn APIs are mutually exclusive": _find_dependent,
    "supported taint effect values": _choose("effect", "`NoSchedule`", "`PreferNoSchedule`", "`NoExecute`"),
    "supported toleration values": _choose("operator", "`Equal`", "`Exists`"),
    "NumProcPerNode must be equal to auto": _choose("numProcPerNode", "`auto`", "`cpu`", "`gpu`", "a whole number"),
    "clusterName and nominatedClusterNames are mutually exclusive": _find_both("clusterName", "nominatedClusterNames"),
    "legacy policies (onSuccess/onFailure) and deletionRules": _find_both("onSuccess", "onFailure", "deletionRules"),
}
"""What finds the values that break a rule, by the beginning of its message."""
