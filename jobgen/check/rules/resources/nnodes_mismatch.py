"""Nodes of torchrun and pods of the job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import pluralize
from jobgen.model.quantity import parse_digits


@rule("job", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def nnodes_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`--nnodes` with a number other than the number of pods.

    torchrun waits for that many nodes. With more nodes than pods it never starts and finally fails; with fewer, some
    pods are left out. The operator sets `PET_NNODES`.

    Remove the option.
    """
    if "elasticPolicy" in manifest.spec or "elastic" in manifest.spec:
        return
    if any(role.pod.partial and "numNodes" not in role.replica_spec for role in manifest.roles):
        return  # the runtime decides
    for role in manifest.roles:
        main = role.pod.main_container
        if main is None or "nnodes" not in main.search_text:
            continue
        for word in find_option_values(parse_command(main.command_line), "nnodes"):
            if parse_digits(word.text) not in (None, manifest.pod_count):
                pods = pluralize(manifest.pod_count, "pod")
                message = f"torchrun waits for `{word.text}` nodes, but the job has {pods}; remove `--nnodes`"
                yield Violation(word.node, message)
