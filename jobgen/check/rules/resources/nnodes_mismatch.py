"""Nodes that torchrun waits for, and the pods there are."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.k8s.objects import Manifest


@rule("job", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def nnodes_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`--nnodes` with another number than the job has pods.

    torchrun waits for so many nodes: with more than there are pods it never begins and fails in the end, with fewer
    some pods are left out. The operator sets `PET_NNODES`, so the option can be left out.
    """
    if "elasticPolicy" in manifest.spec or "elastic" in manifest.spec:
        return
    if any(role.pod.partial and "numNodes" not in role.replica_spec for role in manifest.roles):
        return  # the runtime knows
    for role in manifest.roles:
        main = role.pod.main_container
        if main is None or "nnodes" not in main.search_text:
            continue
        for word in find_option_values(parse_command(main.command_line), "nnodes"):
            if word.text.isdigit() and int(word.text) != manifest.pod_count:
                pods = f"{manifest.pod_count} pods" if manifest.pod_count != 1 else "one pod"
                yield Violation(
                    word.node, f"torchrun waits for {word.text} nodes, and the job has {pods}; leave it out"
                )
