"""Names below `resources` that containers cannot request, and what to write instead of them."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import untraced
from jobgen.model.quantity import canonicalize_quantity
from jobgen.model.suggest import ask_for, find_closest
from jobgen.schema.foreign_words import JOB, find_foreign_word, to_camel_case, to_size

_NAMES = ("gpu", "cpu", "memory", "ephemeral-storage")
_OTHER_NAMES = {
    **dict.fromkeys(("gpus", "GPU", "GPUs", "Gpu", "gpu_count", "gpuCount", "num_gpus", "numGpus"), "gpu"),
    **dict.fromkeys(("cpus", "CPU", "Cpu", "cores"), "cpu"),
    **dict.fromkeys(("mem", "Memory", "ram"), "memory"),
}
_BESIDE = "`{name}: {value}` beside `resources`"
_SHM = "`shm: {value}` beside `resources`"
_PLACES = {
    **dict.fromkeys(("dshm", "sharedMemory", "shm", "shmSize"), _SHM),
    **dict.fromkeys(
        """framework image imagePullPolicy platform priority queue replicas restartPolicy serviceAccount suspend
        workingDir""".split(),
        _BESIDE,
    ),
    **dict.fromkeys(
        "activeDeadlineSeconds backoffLimit cleanPodPolicy ttlSecondsAfterFinished".split(),
        "`{name}: {value}` below `runPolicy`",
    ),
    **dict.fromkeys(("ntasks", "tasks"), "`replicas`, the number of all pods, beside `resources`"),
    **dict.fromkeys(("disk", "storage"), "`ephemeral-storage`, or a claim in `volumes`"),
    **dict.fromkeys(
        "acceleratorType gpuModel gpuProduct gpuType model product type".split(),
        "`nodeSelector` with a label of nodes that have this model",
    ),
}
"""What has a field of its own in a job, by the name in camel case."""
_COUNTS = ("nnodes", "nodes", "numNodes", "numWorkers")
_MAX_VALUE = 80


def find_other_name(name: str) -> str:
    """Return the resource that certainly is meant by another name of it: `gpu` for `gpus`; empty if none is."""
    return _OTHER_NAMES.get(name, "")


def describe_other_field(name: str, value: Any) -> str:
    """Return what to write for what is no resource, in a job; empty if that is unknown and the value is an amount."""
    plain = untraced(value)
    own = to_camel_case(name)
    if place := _PLACES.get(own):
        text = str(to_size(own, plain) or plain) if place is _SHM else str(plain)
        is_shown = not isinstance(plain, (dict, list)) and len(text) <= _MAX_VALUE and "`" not in text
        if is_shown or "{value}" not in place:
            return f"write {place.format(name=own, value=text)}"
        return "write it beside `resources`"
    advice, _ = find_foreign_word(JOB, name, value)
    if own in _COUNTS and type(plain) is int:
        return f"write `replicas: {plain}`, the number of all pods, beside `resources`"
    for resource in _NAMES:
        # What is a field of `resources` in a job has another name here.
        advice = advice.replace(f"`resources.{resource}`", f"`{resource}`")
    advice = advice.removesuffix(" below `resources`")
    if advice.startswith("write `") and advice.endswith("`") and advice.count("`") == 2:
        field = advice[len("write `") : -1]
        is_resource = field.partition(":")[0] in _NAMES
        return advice if is_resource or "." in field else f"{advice} beside `resources`"
    if not advice and (isinstance(plain, (dict, list)) or canonicalize_quantity(str(plain)) is None):
        close = find_closest(name, list(_NAMES))
        return ask_for(close)[2:] if close else "remove it, or write an extended resource with its domain"
    return advice
