"""The steps that policies and rules take on all objects of a run together.

An object that takes more steps than what is free leaves a finding in the result of its file, with their number. Results
are kept and come from several processes, so only the end of a run knows the sum: if it is within the limit, these
findings are dropped; otherwise they stay, and nothing else is said of what was evaluated on these objects.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jobgen.check.cel.steps import RUN_STEPS
from jobgen.check.cel.values import RUN_USED_UP
from jobgen.model.finding import Problem
from jobgen.model.limits import MAX_RUN_STEPS
from jobgen.rendering.file_result import UNKEPT
from jobgen.rendering.locate import locate

if TYPE_CHECKING:
    from jobgen.rendering.environment import Rendered
    from jobgen.rendering.file_result import FileResult
    from jobgen.rendering.run_state import RunState
    from jobgen.rendering.trace import Job

TOO_MANY_STEPS = "too-many-steps"
_CRD_RULES = "crd-rule-violated"


def note_excesses(env: str, job: Job, part: FileResult, made: Rendered) -> bool:
    """Add the steps of an object beyond what is free to the result of its file; return whether there are any."""
    excesses = RUN_STEPS.take_excesses()
    for excess in excesses:
        problem = Problem(TOO_MANY_STEPS, f"{excess.steps} {excess.costliest}", category="policy")
        finding = locate(problem, job.file.path, job.location)
        pointer = "" if excess.is_whole else UNKEPT
        part.findings.append(finding._replace(object=made.identity, env=env, pointer=pointer))
    return bool(excesses)


def limit_run(run: RunState) -> None:
    """If the objects of a run take too many steps together, report those that take more than what is free."""
    noted = [finding for finding in run.findings if finding.rule == TOO_MANY_STEPS]
    if not noted:
        return
    others = [finding for finding in run.findings if finding.rule != TOO_MANY_STEPS]
    split = [finding.message.partition(" ") for finding in noted]
    if sum(int(steps) for steps, _, _ in split) <= MAX_RUN_STEPS:
        run.findings[:] = others
        return
    # The numbers of steps depend on when a process stopped, and the names do not.
    costliest = Counter(sorted(name for _, _, name in split)).most_common(1)[0][0]
    message = f"not all policies and rules were evaluated: {RUN_USED_UP}; simplify the {costliest}, which took the most"
    objects = {(finding.object, finding.env) for finding in noted}
    evaluated = {*run.policies, _CRD_RULES}
    run.findings[:] = [
        finding for finding in others if finding.rule not in evaluated or (finding.object, finding.env) not in objects
    ]
    run.findings += dict.fromkeys(finding._replace(message=message, pointer="") for finding in noted)
    run.unchecked.update(finding.location.file for finding in noted)
