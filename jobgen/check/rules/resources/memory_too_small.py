"""Memory in the wrong unit, or too little of it for GPUs."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import to_milli

_MEBIBYTE = 1024 * 1024 * 1000  # in thousandths
_GIBIBYTE = 1024 * _MEBIBYTE


@rule("container", ERROR, fields=("resources",))
def memory_too_small(container: Container) -> Iterator[Violation]:
    """Too little memory: a missing unit, `m`, which means thousandths, or less than 1 GiB for several GPUs.

    `512m` is half a byte, and `64` is 64 bytes. With a limit below one mebibyte, the container is killed before its
    program starts; such a request is useless to the scheduler, which is a warning.

    Less than one gibibyte for several GPUs is a warning: the libraries of CUDA alone need more, so the container is
    probably killed with `OOMKilled` when it starts to train. As a request without a limit it is an info.

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
    yield from _check_gpus(container)


def _check_gpus(container: Container) -> Iterator[Violation]:
    """Check the memory of a container with several GPUs: the limit, or the request if there is no limit."""
    limit = container.limits.get("memory")
    node = container.requests.get("memory") if limit is None else limit
    size = to_milli(node) if node is not None else None
    if size is None or not 0 < size < _GIBIBYTE or container.gpus < 2:
        return
    effect = "so the scheduler reserves too little" if limit is None else "so the container is probably killed"
    message = f"`{value_of(node)}` is too little memory for {container.gpus} GPUs, {effect}"
    severity, devices = INFO if limit is None else WARNING, ((container.device_node, ""),)
    yield Violation(node, f"{message}; write gibibytes, such as `64Gi`", devices, severity)


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
