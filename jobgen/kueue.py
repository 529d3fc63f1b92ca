"""Kueue's admission decision as a library: the objects of a cluster in, decisions out; docs/kueue.md describes it.

`python -m jobgen.kueue [--answers MODULE] CASES...` answers files of conformance cases, and says where it disagrees.
`answer(table, given)` of the module replaces the answers, so that other simulations can run the same cases.
"""

import sys
from importlib import import_module

from jobgen.api.errors import UsageError
from jobgen.features.kueue.cases import CaseVerdict, answer_cluster, read_cases, run_cases
from jobgen.features.kueue.library import ClusterDecision, WorkloadDecision, decide

__all__ = ["CaseVerdict", "ClusterDecision", "WorkloadDecision", "decide", "read_cases", "run_cases"]


def main(arguments: list[str]) -> int:
    """Run cases; return 0 if all agree, 1 if some do not, and 2 if they cannot be run."""
    answer = answer_cluster
    try:
        if arguments[:1] == ["--answers"] and len(arguments) > 1:
            answer, arguments = import_module(arguments[1]).answer, arguments[2:]
        verdicts = list(run_cases(read_cases(arguments), answer))
    except (UsageError, ImportError, AttributeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for each in verdicts:
        sys.stdout.writelines(f"{each.table}/{each.name}: {difference}\n" for difference in each.differences)
    agreed = sum(not each.differences for each in verdicts)
    sys.stdout.write(f"{agreed} of {len(verdicts)} cases agree\n")
    return 0 if verdicts and agreed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
