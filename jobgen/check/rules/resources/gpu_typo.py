"""Misspelled GPU resources."""

from collections.abc import Iterator
from functools import cache

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import WELL_KNOWN_RESOURCES, is_device, is_device_share
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import is_same_name

_LETTERS = lazy_pattern(r"[^a-z0-9]")
_DOMAINS = frozenset(name.partition("/")[0] for name in WELL_KNOWN_RESOURCES)


@rule("container", WARNING, fields=("resources",))
def gpu_typo(container: Container) -> Iterator[Violation]:
    """A resource name that resembles the name of a GPU, such as `nvidia.com/gpus`.

    Kubernetes accepts any name with a domain and waits for a node that offers it, so the pod stays `Pending`.

    Use the resource name of the device plugin in the cluster.
    """
    for amounts in (container.limits, container.requests):
        for key in amounts:
            meant = _find_known_name(str(key)) if "/" in key else ""
            if meant and not _is_declared(container, key):
                message = f"no device plugin offers `{key}`; did you mean `{meant}`?"
                fix_steps = (FixStep("rename", key, meant),) if meant not in amounts else ()
                yield Violation(key, message, fix_steps=fix_steps, safe=is_same_name(key, meant))


def _is_declared(container: Container, key: Node) -> bool:
    """Return True if the cluster declares the resource as its GPU resource."""
    return str(key) == container.pod.manifest.cluster.gpu_resource


@cache
def _find_known_name(name: str) -> str:
    """Return the well-known name that this name misspells, or an empty string."""
    if is_device(name) or is_device_share(name):
        return ""
    domain, _, rest = name.partition("/")
    for known in WELL_KNOWN_RESOURCES:
        right, _, tail = known.partition("/")
        if domain == right and _normalize(rest) == _normalize(tail):
            return known
        if domain not in _DOMAINS and _normalize(rest) == _normalize(tail) and _is_misspelling(domain, right):
            return known
    return ""


def _normalize(word: str) -> str:
    """Remove case, dashes and the plural from a word."""
    return _LETTERS.sub("", word.lower()).removesuffix("s")


def _is_misspelling(domain: str, right: str) -> bool:
    """Return True if a domain lacks its suffix, or has one letter that is wrong, missing, added or swapped."""
    if domain.lower() in (right, right.rpartition(".")[0]):
        return True
    if abs(len(domain) - len(right)) > 1 or domain[:1] != right[:1]:
        return False
    start = 0
    while start < min(len(domain), len(right)) and domain[start] == right[start]:
        start += 1
    a, b = domain[start:], right[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
