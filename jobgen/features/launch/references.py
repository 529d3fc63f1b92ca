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
# A command with arguments, or in backticks, which only a shell runs.
_COMMAND = lazy_pattern(
    r"(?<!\$)(?:\$\$)*\$\(([a-z]\w{0,20})[ |][^()`]{0,80}\)|(?:=|\A)`([a-z]\w{0,20})(?: [^`]{0,80})?`"
)
_OF_IMAGE = frozenset("HOME LANG LOGNAME OLDPWD PATH PWD SHELL TMPDIR USER".split())
_IN_VALUE = lazy_pattern(r"(?m)^\w+=.*\$\(")
# A program that may read the word behind it as a script.
_MAY_READ = lazy_pattern(r"(?:^|[/\s])(?:ba|z|da|k|a|c)?sh\b|\beval\b|\bsu\b|\bsrun\b|\benvsubst\b")
_HOST = "HOSTNAME"
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
    named = [container for container in containers if any(_list_unset(container)) or any(_list_in_values(container))]
    commands = [found for container in containers for found in _list_commands(container)]
    if not named and not commands:
        return
    reported = {identify(fault.node) for fault in find_faults(manifest)} if has_launch(manifest) else set()
    for program, place in commands:
        if identify(place) not in reported:
            message = f"no shell runs `{program}` here, so the argument stays as it is"
            yield Fault(place, f"{message}; write its value, or start the command with `sh -c`", False)
    for container, env in read_environments(manifest) if named else ():
        for name, place in (*_list_unset(container), *_list_in_values(container)):
            is_set = find_variable(env, name) is not None and (name != _HOST or _may_have_host(container))
            if not is_set and not _SERVICE.fullmatch(name) and identify(place) not in reported:
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


def _may_have_host(container: Container) -> bool:
    """Return True if `HOSTNAME` may be one of the variables of a container, and not only one of its runtime."""
    return _HOST in container.variables or bool(container.data.get("envFrom"))


def _list_commands(container: Container) -> Iterator[tuple[str, At]]:
    """Yield the programs in commands within words that no shell reads, such as `date` in `$(date +%F)`."""
    words = container.words
    if not container.command or not any(sign in container.search_text for sign in ("$(", "`")):
        return
    for index, text in enumerate(words):
        # The code of a program may have such text.
        if _MAY_READ.search(text) or text == "-c":
            return
        found = _COMMAND.search(text) if "\n" not in text else None
        if found and runs_program(found[1] or found[2]):
            yield found[1] or found[2], container.word_place(index)


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
    if name == _HOST:
        return "Kubernetes knows only variables in `env`; set it there with `fieldRef: {fieldPath: metadata.name}`"
    if name in _OF_IMAGE:
        return (
            f"Kubernetes does not know the variables of the image; start the command with `sh -c`, and write `${name}`"
        )
    if runs_program(name):
        return f"no shell runs `{name}`; write its value, or start the command with `sh -c`"
    hint = did_you_mean(name, known)
    return f"the container has no variable `{name}`{hint or f'; set `{name}` in `env`'}"
