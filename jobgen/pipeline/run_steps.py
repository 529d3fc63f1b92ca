"""The steps that all objects of a run take together beyond those that are free: noted for each, judged at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobgen.check.cel.values import RUN_USED_UP
from jobgen.model import budget
from jobgen.model.budget import RUN, TOO_MANY_STEPS
from jobgen.model.finding import FaultKey, Finding, Problem
from jobgen.rendering.file_result import NotedExcess
from jobgen.rendering.locate import locate

if TYPE_CHECKING:
    from jobgen.rendering.environment import Rendered
    from jobgen.rendering.file_result import FileResult
    from jobgen.rendering.run_values import LoadedLayers
    from jobgen.rendering.trace import Job

_CRD_RULES = "crd-rule-violated"


def note_excesses(env: str, job: Job, part: FileResult, made: Rendered) -> bool:
    """Add the steps of an object beyond what is free to the result of its file; return whether there are any."""
    excesses = RUN.file.take_excesses()
    for excess in excesses:
        finding = locate(Problem(TOO_MANY_STEPS, "", category="policy"), job.file.path, job.location)
        part.excesses.append(NotedExcess(excess, finding._replace(object=made.identity, env=env)))
    return bool(excesses)


def limit_run(
    findings: list[Finding], noted: Sequence[NotedExcess], layers: LoadedLayers
) -> tuple[list[Finding], frozenset[str]]:
    """If the objects of a run take too many steps together, report those that take more than what is free.

    Nothing else is said of what was evaluated on these objects. Of a file that takes too many by itself, one finding is
    enough in each environment. Returns the findings, and the files in which not everything was evaluated.
    """
    if sum(each.excess.steps for each in noted) > budget.MAX_RUN_STEPS:
        # The numbers of steps depend on when a process stopped, and the names do not.
        costliest = Counter(sorted(each.excess.costliest for each in noted)).most_common(1)[0][0]
        message = (
            f"not all policies and rules were evaluated: {RUN_USED_UP}; simplify the {costliest}, which took the most"
        )
        found = [each.finding for each in noted]
        objects = {(finding.object, finding.env) for finding in found}
        evaluated = {*layers.policies, _CRD_RULES, TOO_MANY_STEPS}
        kept = [
            finding
            for finding in findings
            if finding.rule not in evaluated or (finding.object, finding.env) not in objects
        ]
        kept += dict.fromkeys(finding._replace(message=message) for finding in found)
        return kept, frozenset(finding.location.file for finding in found)
    if any(finding.rule == TOO_MANY_STEPS for finding in findings):
        first: dict[tuple[str, str, FaultKey], int] = {}
        for number, finding in enumerate(findings):
            if finding.rule == TOO_MANY_STEPS:
                first.setdefault((finding.location.file, finding.env, finding.fault), number)
        numbers = {*first.values()}
        findings = [
            finding for number, finding in enumerate(findings) if finding.rule != TOO_MANY_STEPS or number in numbers
        ]
    return findings, frozenset()
