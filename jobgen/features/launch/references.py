"""References such as `$(NAME)` in commands, which Kubernetes replaces if the container has a variable of that name."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.judge import find_faults
from jobgen.features.launch.read_job import read_environments
from jobgen.features.launch.shell.values import find_variable, runs_program
from jobgen.features.launch.signs import has_launch
from jobgen.features.launch.values import Fault
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, identify
from jobgen.model.suggest import did_you_mean

REFERENCE = lazy_pattern(r"(?<!\$)(?:\$\$)*\$\(([A-Za-z_]\w*)\)")
_IN_VALUE = lazy_pattern(r"(?m)^\w+=.*\$\(")
# A program that may read the word behind it as a script.
_MAY_READ = lazy_pattern(r"(?:^|[/\s])(?:ba|z|da|k|a|c)?sh\b|\beval\b|\bsu\b|\bsrun\b|\benvsubst\b")
# What Kubernetes sets for each Service of the namespace.
_SERVICE = lazy_pattern(r"KUBERNETES_\w+|\w+_SERVICE_(?:HOST|PORT)\w*|\w+_PORT_\d+_\w+")
# What the operator of a PyTorchJob sets if the job has a master.
_OF_MASTER = frozenset(("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"))


def check_references(manifest: Manifest) -> Iterator[Fault]:
    """Yield the references that Kubernetes leaves as they are."""
    containers = [container for pod in manifest.pods for container in pod.containers]
    for container in containers:
        if _IN_VALUE.search(container.search_text):
            yield from _list_late(container)
    written = [container for container in containers if any(_list_unset(container)) or any(_list_in_values(container))]
    if not written:
        return
    reported = {identify(fault.node) for fault in find_faults(manifest)} if has_launch(manifest) else set()
    for container, env in read_environments(manifest):
        for name, place in (*_list_unset(container), *_list_in_values(container)):
            if find_variable(env, name) is None and not _SERVICE.fullmatch(name) and identify(place) not in reported:
                yield Fault(place, f"`$({name})` stays as it is: {_advise(manifest, name, list(env))}", False)


def _list_late(container: Container) -> Iterator[Fault]:
    """Yield the values that name a variable which is set below them: Kubernetes knows only those above."""
    above: set[str] = set()
    for name, entry in container.env:
        text = as_text(entry.get("value"))
        for other in REFERENCE.findall(text) if "$(" in text else ():
            if other not in above and other != name and other in container.variables:
                message = f"`$({other})` stays as it is, because `{other}` is set below `{name}`"
                yield Fault(At(entry, "value"), f"{message}; write `{other}` above it", False)
        above.add(name)


def is_unset(container: Container, name: str) -> bool:
    """Return True if neither a container nor its operator sets a variable, nor Kubernetes."""
    environments = (env for other, env in read_environments(container.pod.manifest) if other is container)
    env = next(environments, None)
    return env is not None and find_variable(env, name) is None and not _SERVICE.fullmatch(name)


def _list_unset(container: Container) -> Iterator[tuple[str, At]]:
    """Yield the names in references that the container itself does not set, in words that no shell reads."""
    if "$(" not in container.search_text or not container.command:
        # The entry point of the image may be a shell.
        return
    own = {name for name, _ in container.env}
    for index, text in enumerate(container.words):
        if _MAY_READ.search(text):
            return
        if "$(" in text:
            yield from ((name, container.word_place(index)) for name in REFERENCE.findall(text) if name not in own)


def _list_in_values(container: Container) -> Iterator[tuple[str, At]]:
    """Yield the names in values of variables that the container itself does not set: Kubernetes leaves them.

    A value that a shell may read, such as a script, can mean a program by `$(NAME)`: names of variables are upper case.
    """
    if not _IN_VALUE.search(container.search_text):
        return
    known = container.variables
    for name, entry in container.env:
        text = as_text(entry.get("value"))
        for other in REFERENCE.findall(text) if "$(" in text and not _MAY_READ.search(text) else ():
            if other not in known and other.isupper() and other != name:
                yield other, At(entry, "value")


def _advise(manifest: Manifest, name: str, known: list[str]) -> str:
    if name in _OF_MASTER and manifest.kind_name == "PyTorchJob" and manifest.find_role("master") is None:
        return f"the operator sets `{name}` only if the job has a master; add one"
    if runs_program(name):
        return f"no shell runs `{name}`; write its value, or start the command with `sh -c`"
    hint = did_you_mean(name, known)
    return f"the container has no variable `{name}`{hint or f'; set `{name}` in `env`'}"
