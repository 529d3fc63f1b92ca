"""Memory in the wrong unit."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import to_milli

_MEBIBYTE = 1024 * 1024 * 1000  # in thousandths


@rule("container", ERROR, fields=("resources",))
def memory_too_small(container: Container) -> Iterator[Violation]:
    """Less than one mebibyte of memory: a missing unit, or `m`, which means thousandths.

    `512m` is half a byte, and `64` is 64 bytes. With such a limit the container is killed before its program starts;
    such a request is useless to the scheduler.

    Write `512Mi` or `64Gi`.
    """
    for amounts, severity in ((container.limits, ERROR), (container.requests, WARNING)):
        node = amounts.get("memory")
        size = to_milli(node) if node is not None else None
        if size is not None and 0 < size < _MEBIBYTE:
            written = str(value_of(node))
            fix_steps = (FixStep("set", node, _suggest(written)),)
            yield Violation(node, _format_message(written), severity=severity, fix_steps=fix_steps, safe=False)
            return


def _format_message(written: str) -> str:
    if written.endswith("m"):
        reason = "`m` means thousandths of a byte"
    elif written[-1].isdigit():
        reason = "without a unit it means bytes"
    else:
        reason = "no program fits into less than a mebibyte"
    return f"`{written}` is too little memory: {reason}; write `{_suggest(written)}`"


def _suggest(written: str) -> str:
    """Return the quantity that was probably meant."""
    digits = written.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return f"{digits}Mi" if written.endswith("m") or len(digits) > 2 else f"{digits}Gi"
