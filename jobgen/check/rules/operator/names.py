"""Names that an operator makes of a job, and cannot."""

from collections.abc import Iterator

from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import CHILD_REJECTED
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.k8s.operators import MAX_NAME_LENGTH, describe_rejection, find_longest_suffix
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence


@rule("job", WARNING)
def misspelled_kind(manifest: Manifest) -> Iterator[Violation]:
    """A kind name that appears in documentation but that no operator serves.

    TensorStack's get-started page uses `TensorFlowJob`, but its reference and its examples know only
    `TensorFlowTrainingJob`. Unless the cluster defines a kind of that name, the API server rejects the object.

    Use the name of the kind that the operator serves.

    When to turn it off: when a CRD of exactly this name is yours, put it into `schemas/` with `jobgen schema
    import`; the kind is then known and checked.
    """
    kind = manifest.kind
    if kind and manifest.kind_name in kind.aliases:
        message = Sentence("no operator serves the kind `{}`; use `{}`", manifest.kind_name, kind.name)
        yield Violation(
            At(manifest.object, "kind"),
            message,
            fix_steps=(FixStep("set", At(manifest.object, "kind"), kind.name),),
            safe=False,
        )


_fits = lazy_pattern(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")


@rule("job", ERROR)
def bad_job_name(manifest: Manifest) -> Iterator[Violation]:
    """A job name that no Service can have: it starts with a digit, or contains a dot.

    The operator creates a Service for each pod, and the name of a Service must start with a letter and cannot contain
    dots. The webhook rejects such a job; older operators accept it and never start it.

    Use `a-z`, `0-9` and `-`, starting with a letter.

    When to turn it off: never for training-operator and mpi-operator, whose Services need such names. If your
    operator names its Services differently, import its CRD and declare its version; the rule follows the operator
    of the kind.
    """
    assert manifest.kind is not None
    if manifest.kind.requirements.names != "service":
        return
    name = as_text(manifest.metadata.get("name") or manifest.metadata.get("generateName"))
    whole_name = name if manifest.name else f"{name}aaaaa"
    # The API server rejects a name that no object can have before the operator sees it.
    if name and not _fits.fullmatch(whole_name) and is_dns_subdomain(whole_name):
        yield Violation(
            _find_name(manifest),
            Sentence("`{}` must start with a letter and contain no dots; {}", name, describe_rejection(manifest)),
        )


# The API server keeps this many characters of `generateName`, and appends random ones.
_PREFIX, _RANDOM = 58, 5


@rule("job", ERROR)
def long_job_name(manifest: Manifest) -> Iterator[Violation]:
    """A job name that is too long for the suffixes of its pods and Services.

    The API server accepts the job but rejects its Services or its JobSet, because `<name>-<role>-<index>` is longer
    than 63 characters, so the job never runs. The maximum depends on the kind, the roles and the number of replicas. It
    is a warning if a runtime that is not known decides about the suffixes.

    Shorten the name.

    When to turn it off: never while the kind appends these suffixes, as labels and Services allow 63 characters.
    With fewer than ten replicas, one more character fits: the number of digits counts.
    """
    assert manifest.kind is not None
    name = as_text(manifest.metadata.get("name") or manifest.metadata.get("generateName"))
    length = len(name) if manifest.name else min(len(name), _PREFIX) + _RANDOM
    if length <= MAX_NAME_LENGTH // 2 or not manifest.kind.requirements.names:
        return
    suffix = find_longest_suffix(manifest)
    if length + len(suffix) > MAX_NAME_LENGTH:
        reason = Sentence("`…{}` is appended to it", suffix) if suffix else Sentence("it is also a label value")
        message = Sentence(
            "the name has {} characters, but {}; use at most {}", length, reason, MAX_NAME_LENGTH - len(suffix)
        )
        severity = None if _is_suffix_known(manifest) else WARNING
        yield Violation(_find_name(manifest), message, severity=severity)


def _find_name(manifest: Manifest) -> At:
    """Return the place of the name of an object, or of its beginning."""
    return At(manifest.metadata, "name" if as_text(manifest.metadata.get("name")) else "generateName")


def _is_suffix_known(manifest: Manifest) -> bool:
    """Return True if the suffixes are known; those of a custom runtime are not."""
    assert manifest.kind is not None
    runtimes = manifest.kind.requirements.runtimes
    return not runtimes or as_text(get_path(manifest.spec, "runtimeRef", "name")) in runtimes


@rule("manifest", ERROR, kinds=KINDS)
def rejected_child(manifest: Manifest) -> Iterator[Violation]:
    """An object whose Job, StatefulSet, Service or pods the API server rejects.

    The API server accepts the object, but not what its operator creates from it. The operator retries forever and
    reports this only in events.

    Correct the field of the object from which the child gets the refused value, such as a name that is too long or
    a label with a space.

    When to turn it off: not suppressible in any useful way, because the object is accepted and then fails out of
    sight. A webhook that repairs the child would have to be named in an exception.
    """
    yield from find_violations(manifest, CHILD_REJECTED)


@rule("container", ERROR, fields=("ports",))
def service_port_clash(container: Container) -> Iterator[Violation]:
    """A port of the main container that has no name, or the same number as another port.

    The operator creates a headless Service from the container's ports and its own. The API server rejects a Service
    with several ports if one has no name or two have the same number. The pods cannot reach each other, and the status
    of the job is not updated.

    Name every port, and use each number once.

    When to turn it off: if the port is meant for a sidecar, declare it there: only the ports of the main container
    are copied to the Service.
    """
    kind = container.pod.manifest.kind
    pod = container.pod
    if kind is None or not kind.requirements.ports or pod.role is None or pod.main_container is not container:
        return
    ports = [port for port in as_list(container.data.get("ports")) if isinstance(port, dict)]
    own = str(kind.port.get("name"))
    taken: dict[int, dict[str, Plain]] = {}
    added = own not in [as_text(port.get("name")) for port in ports]
    if added and "number" in kind.port:
        taken[kind.port["number"]] = {}
    for port in ports:
        number = as_integer(port.get("containerPort"))
        if number is None:
            # The schema of the CRD reports it.
            continue
        if number in taken:
            yield from _report_duplicate(port, own, taken[number])
        elif not as_text(port.get("name")) and len(ports) + added > 1:
            message = Sentence(
                "a Service with several ports must name all of them, and the operator adds `{}`; name this port", own
            )
            yield Violation(At(port, "containerPort"), message)
        taken[number] = port


def _report_duplicate(port: dict[str, Plain], own: str, other: dict[str, Plain]) -> Iterator[Violation]:
    """Report two ports with the same number; the port of the operator is not in the manifest."""
    node = port["containerPort"]
    if not other:
        yield Violation(
            At(port, "containerPort"),
            Sentence("the operator adds port `{}` with the same number; name this port `{}`", own, own),
        )
    elif (as_text(port.get("protocol")) or "TCP") != (as_text(other.get("protocol")) or "TCP"):
        # The CRD rejects two ports with the same number and protocol.
        number = node
        message = Sentence(
            "port `{}` can be used only once in a Service, even with different protocols; remove one", number
        )
        related = ((At(other, "containerPort"), "the other port"),)
        yield Violation(At(port, "containerPort"), message, related)
