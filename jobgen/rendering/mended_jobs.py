"""Jobs with errors, read without their faulty values: they are checked, and never rendered.

A job is mended twice, see `jobgen.model.mend`. What the checks find in both is reported beside the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import TracedScalar, ValidFields, location_of, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.mend import find_gaps, list_faulty_names, list_parents, mend
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.trace import Job

ABOUT_MISSING_FIELDS = frozenset(("missing-field", "missing-pod-field"))
"""Rules about what a job does not have."""


class MendedJob(NamedTuple):
    """A job without its faulty values, with placeholders for them, and where they are."""

    left_out: Job
    filled: Job
    faults: frozenset[object] = frozenset()
    hidden: frozenset[str] = frozenset()
    """The rules that say nothing, because both lack a field, and what was meant by it is not known."""
    parents: frozenset[object] = frozenset()
    """Where the blocks begin that hold a fault without an obvious correction."""
    lines: frozenset[int] = frozenset()
    """The lines whose text was repaired."""
    names: frozenset[str] = frozenset()
    """The fields at fault; a finding that one is missing, or that its values do not add up, follows from the fault."""


def mend_job(
    job: Job, problems: Sequence[Problem], find_errors: Callable[[ValidFields], Iterable[Problem]] = lambda _: ()
) -> MendedJob | None:
    """Return a job without the values at fault; None if that leaves no valid job, or another one."""
    data, others = _name_validly(job.traced_document().data, problems)
    valid: list[ValidFields] = []
    # An item of a list may need the value at fault, such as its name.
    meant = [(value_of(step.node), step.value) for each in problems for step in each.fix_steps if step.op == "set"]
    name = [next((new for old, new in meant if old == each), each) for each in _name_job(data)]
    for whole_items in (False, True):
        copies = (mend(data, others, whole_items=whole_items) or ()) if others else (data,)
        valid = [each for each in copies if _name_job(each) == name and not any(find_errors(each))]
        if valid:
            break
    if not valid:
        return None
    left_out, filled = (
        job._replace(document=job.document._replace(data=untraced(copied)), mended=copied)
        for copied in (valid[0], valid[-1])
    )
    # An unknown field may be meant as any other.
    unknown = ("unknown-field", "unknown-role")
    is_incomplete = any(problem.rule in unknown and not problem.fix_steps for problem in problems)
    hidden = ABOUT_MISSING_FIELDS | {"launcher-without-script", "replica-totals"} if is_incomplete else frozenset()
    faults = frozenset(location_of(problem.node) for problem in problems)
    gaps = {location_of(problem.node) for problem in find_gaps(data, problems)}
    parents = frozenset(list_parents(data, gaps.__contains__))
    names = frozenset(list_faulty_names(data, faults.__contains__))
    return MendedJob(left_out, filled, faults, hidden, parents, names=names)


def _name_validly(data: ValidFields, problems: Sequence[Problem]) -> tuple[ValidFields, Sequence[Problem]]:
    """Return a job with the name that a finding about its name suggests, and the other problems."""
    metadata: Mapping[str, Any] = as_mapping(data.get("metadata"))
    name = metadata.get("name")
    wrong = next((each for each in problems if each.rule == "invalid-value" and each.node is name), None)
    if wrong is None or type(name) is not TracedScalar or not isinstance(name.value, str):
        return data, problems
    # Imported late: most names are valid.
    from jobgen.schema.right_forms import write_as_name

    meant = write_as_name(name.value)
    if not meant:
        return data, problems
    named = {**metadata, "name": TracedScalar(meant, name.location, name.layer)}
    return {**data, "metadata": named}, [each for each in problems if each is not wrong]


def _name_job(data: ValidFields) -> list[object]:
    """Return what decides which job a document is; with another value, the checks would be about another job."""
    metadata, spec = data.get("metadata"), data.get("spec")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    decisive = [spec.get(field) for field in ("framework", "platform")] if isinstance(spec, dict) else [spec]
    return list(map(value_of, (data.get("apiVersion"), data.get("kind"), name, *decisive)))


def keep_independent(mended: MendedJob, left_out: FileResult, filled: FileResult) -> list[Finding]:
    """Return the findings that both copies of a job have, but for those at its faulty values."""
    known = {found.key for found in filled.findings}
    both = (found for found in left_out.findings if found.key in known and found.rule not in mended.hidden)
    return [
        found
        for found in both
        if found.location not in mended.faults
        and not follows_from(found, mended.lines, mended.parents)
        and not _is_about(found, mended.names)
    ]


def _is_about(found: Finding, names: Collection[str]) -> bool:
    """Return True if a finding says that one of some fields is missing."""
    if found.category == "policy":
        # What a policy demands is only in the words of its author.
        return any(found.has_word(name, name.removesuffix("s")) for name in names)
    if not found.rule.startswith("missing-"):
        return False
    # Imported late: most jobs have no faults.
    from jobgen.reports.read_fields import DEPENDS_ON

    needed = {
        found.rule.removeprefix("missing-"),
        *found.wrong_values,
        *(found.evidence or ()),
        *DEPENDS_ON.get(found.rule, ()),
    }
    return any(name in needed or name.removesuffix("s") in needed for name in names)


def follows_from(found: Finding, lines: Collection[int], parents: Collection[object]) -> bool:
    """Return True if a finding can be about text that was repaired, or about the form of a block that holds a fault."""
    first, last = found.location.line, max(found.location.line, found.location.end_line)
    is_about_form = found.rule in ABOUT_MISSING_FIELDS or found.rule == "wrong-type"
    return any(first <= line <= last for line in lines) or (is_about_form and found.location in parents)
