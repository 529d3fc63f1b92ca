"""The GPUs that the processes of a container see, and the variables that limit them."""

from __future__ import annotations

from jobgen.features.launch.values import Pods, Program

_VARIABLE = "CUDA_VISIBLE_DEVICES"


def count_visible(program: Program, pods: Pods) -> int | None:
    """Return the number of GPUs that processes see: CUDA stops at the first identifier that it does not have."""
    value = program.variable(_VARIABLE)
    if value is None or pods.gpus is None:
        return pods.gpus
    if value.text is None:
        return None
    seen: set[int] = set()
    for item in value.text.split(","):
        if not item.strip().isdecimal():
            # Names of devices, or an end such as -1.
            return None if item.strip().lstrip("-")[:1].isalpha() else len(seen)
        number = int(item[:9])
        if number >= pods.gpus or number in seen:
            break
        seen.add(number)
    return len(seen)
