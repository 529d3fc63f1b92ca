"""Nodes of torchrun and pods of the job."""

from collections.abc import Iterator, Sequence

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.command_line import Argument, find_option_values, parse_command
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import choose_severity
from jobgen.model.data import location_of
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import parse_digits

# Words of a script, or options, with which a pod may do something else than the others.
_CONDITIONS = frozenset(("--standalone", "if", "case", "for", "while", "||", "[", "[["))

_TORCHRUN = lazy_pattern(r"(?:.*/)?torchrun|torch\.distributed\.(?:run|launch)")


@rule("job", ERROR, kinds=("Job", "PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def nnodes_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`--nnodes` with a number other than the number of pods.

    torchrun waits for that many nodes. With more nodes than pods it never starts, and fails after a timeout. With
    fewer, the first pods train without the others, which wait, fail after a timeout, and hold their GPUs until then.
    The operator sets `PET_NNODES`. It is a warning if the option possibly belongs to another program, or if pods are
    possibly left out on purpose: with one node, with `--standalone`, in a script with conditions, or if commands of
    roles differ. It is also a warning in a Job, where `parallelism` is the number of pods at the same time; a Job with
    one pod can belong to others.

    Remove the option.
    """
    if "elasticPolicy" in manifest.spec or "elastic" in manifest.spec:
        return
    if manifest.kind_name == "Job" and (manifest.group != "batch" or manifest.pod_count < 2):
        return
    if any(role.pod.partial and "numNodes" not in role.replica_spec for role in manifest.roles):
        return  # the runtime decides
    containers = [main for role in manifest.roles if (main := role.pod.main_container)]
    if not any("nnodes" in main.search_text for main in containers):
        return
    commands = [parse_command(main.command_line) for main in containers]
    is_shared = all([word.text for word in command] == [word.text for word in commands[0]] for command in commands)
    seen: set[object] = set()
    for command in commands:
        for word in find_option_values(command, "nnodes"):
            count, place = parse_digits(word.text), (location_of(word.node) or id(word.node), word.text)
            if count in (None, manifest.pod_count) or place in seen:
                continue
            # Roles that have the same command, from one line, have one fault.
            seen.add(place)
            pods = pluralize(manifest.pod_count, "pod")
            is_certain = (
                is_shared
                and count != 1
                and manifest.kind_name != "Job"
                and word.text in _find_torchrun_options(command)
            )
            message = f"torchrun waits for `{word.text}` nodes, but the job has {pods}; remove `--nnodes`"
            counts = tuple(each for role in manifest.roles for each in role.compared_count)
            yield Violation(word.node, message, counts, choose_severity(manifest) if is_certain else WARNING)


def _find_torchrun_options(command: Sequence[Argument]) -> set[str]:
    """Return the values of `--nnodes` that torchrun certainly gets; an option after the script is the script's own."""
    words = [word.text for word in command]
    start = next((index for index, text in enumerate(words) if _TORCHRUN.fullmatch(text)), None)
    if start is None or _CONDITIONS.intersection(words):
        return set()
    end = next((index for index, text in enumerate(words) if index > start and text.endswith(".py")), len(words))
    return {word.text for word in find_option_values(command[start:end], "nnodes")}
