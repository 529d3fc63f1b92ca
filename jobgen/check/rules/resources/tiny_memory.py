"""Memory that is too little for any program."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import to_milli

_MEBIBYTE = 1024 * 1024 * 1000  # in thousandths


@rule("container", ERROR, fields=("resources",))
def tiny_memory(container: Container) -> Iterator[Violation]:
    """Less than a mebibyte of memory: a forgotten unit, or `m`, which means thousandths.

    `512m` is half a byte, and `64` is 64 bytes. With such a limit the container is killed before its program begins;
    such a request tells the scheduler nothing. Write `512Mi` or `64Gi`.
    """
    for amounts, severity in ((container.limits, ERROR), (container.requests, WARNING)):
        node = amounts.get("memory")
        size = to_milli(node) if node is not None else None
        if size is not None and 0 < size < _MEBIBYTE:
            said = str(value_of(node))
            fix_steps = (FixStep("set", node, _meant(said)),)
            yield Violation(node, _told(said), severity=severity, fix_steps=fix_steps, safe=False)
            return


def _told(written: str) -> str:
    if written.endswith("m"):
        so = "`m` means thousandths of a byte"
    elif written[-1].isdigit():
        so = "without a unit these are bytes"
    else:
        so = "no program fits in less than a mebibyte"
    return f"`{written}` of memory: {so}; write `{_meant(written)}`"


def _meant(written: str) -> str:
    digits = written.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return f"{digits}Mi" if written.endswith("m") or len(digits) > 2 else f"{digits}Gi"
