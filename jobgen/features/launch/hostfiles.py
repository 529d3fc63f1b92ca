"""Hostfiles whose entries a launcher cannot read: each program has a form of its own.

mpi-operator 0.6 writes `host slots=N` for Open MPI, and `host:N` for Intel MPI and MPICH. Other sources: DeepSpeed 0.19
(launcher/runner.py), and horovod 0.28 (runner/util/hosts.py).
"""

from __future__ import annotations

from jobgen.features.launch.values import Fault, Pods, Program, Word
from jobgen.model.data import Location
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import find_at

OPERATOR_FILE = "/etc/mpi/hostfile"


class Format(NamedTuple):
    """What a launcher reads of each line of its hostfile."""

    launcher: str
    pattern: str
    error: str
    """What the launcher says; `{}` stands for the line."""


DEEPSPEED = Format("deepspeed", r"\S+\s+slots=\d", "Hostfile contains a bad entry: {}")
HOROVOD = Format("horovodrun", r"\S[^=]*=", "IndexError: list index out of range")
_HOST = lazy_pattern(r"([\w.-]+)(?:\s*:\s*|\s+(?:slots\s*=\s*)?)(\d+)")
_PATTERNS = {each.launcher: lazy_pattern(each.pattern) for each in (DEEPSPEED, HOROVOD)}


def check_entries(program: Program, file: Word | None, pods: Pods, form: Format) -> Fault | None:
    """Return the first line of a hostfile that a launcher refuses; None if there is none, or no such file is known."""
    text = program.files(file.text) if file is not None and file.text else None
    for number, line in enumerate((text or "").split("\n"), 1):
        entry = line.strip()
        if not entry or entry[0] == "#" or _PATTERNS[form.launcher].match(entry):
            continue
        return _describe(program, file or Word("", None), pods, form, entry, number)
    return None


def _describe(program: Program, file: Word, pods: Pods, form: Format, entry: str, number: int) -> Fault:
    node = program.node if file.node is None else file.node
    error = form.error.format(entry)
    implementation = find_at(pods.container.pod.manifest.spec, "mpiImplementation")
    if file.text == OPERATOR_FILE and pods.kind == "MPIJob" and implementation is not None:
        message = f"`{form.launcher}` reads lines such as `HOST slots=4`, and the operator writes `HOST:4` for this"
        message = f"{message} `mpiImplementation` ({form.launcher}: `{error}`); write `mpiImplementation: OpenMPI`"
        return Fault(node, message, related=((implementation, "decides the form of the hostfile"),))
    found = _HOST.match(entry)
    advice = f"write `{found[1]} slots={found[2]}`" if found else "write `HOST slots=NUMBER`"
    message = f"`{entry}` is not an entry of a hostfile of {form.launcher} (`{error}`); {advice}"
    return Fault(node, message, file=file.text or "", inside=Location("", number, 1, number, len(entry) + 1))
