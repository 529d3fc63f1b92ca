"""Values of variables that a library reads as one of a few words, or as 0 or 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.features.launch.values import Fault
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At

RULE = "launch-variables"


class _Words(NamedTuple):
    """The words of a variable, and what a library does with others."""

    words: tuple[str, ...]
    effect: str
    is_list: bool = False
    """True if several can be given, with commas between them."""
    meant: Mapping[str, str] = {}
    """What is meant by other words."""
    is_exact: bool = False
    """True if the case of letters counts."""


_NUMBERS = tuple(map(str, range(6)))
_NCCL = "NCCL ignores it"
_SWITCH = _Words(("0", "1", "2", "-1", "-2"), "NCCL reads a number and ignores it", False, {"true": "1", "false": "0"})
_SWITCH = _SWITCH._replace(meant={**_SWITCH.meant, "yes": "1", "no": "0", "on": "1", "off": "0", "y": "1", "n": "0"})
_PATHS = _Words((*"LOC NVL PIX PXB P2C PXN PHB NODE SYS".split(), *_NUMBERS, "6", "7"), _NCCL)
VALUES = {
    **dict.fromkeys(
        """NCCL_IB_DISABLE NCCL_P2P_DISABLE NCCL_SHM_DISABLE NCCL_NVLS_ENABLE NCCL_NET_GDR_READ
        NCCL_CROSS_NIC""".split(),
        _SWITCH,
    ),
    "NCCL_DEBUG": _Words(
        ("VERSION", "WARN", "INFO", "ABORT", "TRACE", "NONE"),
        "NCCL writes no messages",
        meant={"debug": "INFO", "warning": "WARN", "error": "WARN", "true": "INFO", "1": "INFO", "verbose": "INFO"},
    ),
    "NCCL_P2P_LEVEL": _PATHS,
    "NCCL_NET_GDR_LEVEL": _PATHS,
    "NCCL_SOCKET_FAMILY": _Words(("AF_INET", "AF_INET6"), _NCCL, meant={"ipv4": "AF_INET", "ipv6": "AF_INET6"}),
    "TORCH_DISTRIBUTED_DEBUG": _Words(
        ("OFF", "INFO", "DETAIL"),
        "PyTorch refuses it",
        meant={"debug": "DETAIL", "details": "DETAIL", "1": "INFO", "true": "INFO", "0": "OFF", "false": "OFF"},
    ),
    "TORCH_CPP_LOG_LEVEL": _Words(
        ("INFO", "WARNING", "ERROR", "FATAL", "0", "1", "2", "3"),
        "PyTorch ignores it",
        meant={"warn": "WARNING", "debug": "INFO"},
    ),
    "CUDA_DEVICE_ORDER": _Words(("PCI_BUS_ID", "FASTEST_FIRST"), "CUDA ignores it", is_exact=True),
    "NVIDIA_DRIVER_CAPABILITIES": _Words(
        ("all", "compute", "compat32", "graphics", "utility", "video", "display", "ngx"),
        "the container toolkit of NVIDIA refuses it",
        True,
        {"gpu": "compute", "utilities": "utility", "computer": "compute"},
        is_exact=True,
    ),
    "TF_CPP_MIN_LOG_LEVEL": _Words(
        _NUMBERS, "TensorFlow reads a number", meant={"info": "0", "warning": "1", "error": "2", "fatal": "3"}
    ),
    "WANDB_MODE": _Words(
        ("online", "offline", "disabled", "dryrun", "run", "shared"),
        "wandb refuses it",
        meant={"off": "disabled", "false": "disabled", "disable": "disabled", "on": "online", "none": "disabled"},
    ),
    "TRANSFORMERS_VERBOSITY": _Words(
        ("detail", "debug", "info", "warning", "error", "critical"),
        "transformers ignores it",
        meant={"warn": "warning"},
    ),
}
"""The variables, each with its words."""


ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""Variables with the options of PyTorch's allocator, each with a colon and its value."""
_OPTIONS_OF_ALLOCATOR = frozenset(
    """backend expandable_segments garbage_collection_threshold max_non_split_rounding_mb max_split_size_mb
    per_process_memory_fraction pinned_num_register_threads pinned_use_background_threads
    pinned_use_cuda_host_register release_lock_on_cudamalloc roundup_power2_divisions""".split()
)
_ALLOCATOR_WORD = lazy_pattern(r"(?:\A|,)\s*([a-z]\w+)\s*([:=])")


def check_allocator(name: str, entry: Mapping[str, Plain]) -> Iterator[Fault]:
    """Yield an option of PyTorch's allocator that is misspelled, or that has `=` instead of a colon."""
    text = as_text(entry.get("value"))
    for found in _ALLOCATOR_WORD.finditer(text) if "$" not in text else ():
        option, sign = found.groups()
        meant = option
        if option not in _OPTIONS_OF_ALLOCATOR:
            # Imported late: most options are right.
            from jobgen.model.meant import find_meant

            meant = find_meant(option, _OPTIONS_OF_ALLOCATOR)
        if meant and (meant != option or sign == "="):
            what = f"`{option}` is not an option of it" if meant != option else "an option has a colon behind its name"
            message = f"PyTorch refuses this `{name}`: {what}; write `{meant}:`"
            yield Fault(At(entry, "value"), message, False, rule=RULE)
            return


def check_value(name: str, entry: Mapping[str, Plain]) -> Iterator[Fault]:
    """Yield what is wrong with the value of a variable of `VALUES`."""
    text, known = as_text(entry.get("value")).strip(), VALUES[name]
    words = [each.strip() for each in text.split(",")] if known.is_list else [text]
    for word in words:
        found = word if known.is_exact else word.upper()
        if not word or "$" in word or found in (known.words if known.is_exact else map(str.upper, known.words)):
            continue
        # Imported late: most values are right.
        from jobgen.model.meant import find_meant

        *others, last = [f"`{each}`" for each in known.words if not each.lstrip("-").isdigit()] or ["`0`", "`1`"]
        meant = known.meant.get(word.lower()) or find_meant(word, known.words)
        advice = f"write `{meant}`" if meant else f"write {', '.join(others)} or {last}"
        message = f"`{name}` does not know the value `{word}`, and {known.effect}; {advice}"
        yield Fault(At(entry, "value"), message, False, rule=RULE)
        return
