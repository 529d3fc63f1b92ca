"""CPUs without their unit."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import to_milli

# More than machines for training have; the smallest of the usual numbers of millicores above it is 500.
_MOST_CORES = 448


@rule("container", WARNING, fields=("resources",))
def cpu_too_large(container: Container) -> Iterator[Violation]:
    """A number of CPUs that hardly any node has, such as `500`.

    `500` is five hundred cores, and `500m` is half a core. Hardly any machine has that many, so
    the pod probably stays `Pending`.

    Add the unit `m` for millicores.
    """
    reported: set[int] = set()
    for amounts in (container.limits, container.requests):
        node = amounts.get("cpu")
        milli = to_milli(node) if node is not None else None
        if milli is None or milli <= _MOST_CORES * 1000 or milli in reported:
            continue
        reported.add(milli)
        cores = milli // 1000
        message = f"`cpu` is `{cores}` cores, more than most nodes have; write `{cores}m` for millicores"
        fix_steps = (FixStep("set", node, f"{cores}m"),) if str(value_of(node)) == str(cores) else ()
        yield Violation(node, message, fix_steps=fix_steps, safe=False)
