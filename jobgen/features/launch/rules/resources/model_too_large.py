"""Models that cannot fit into the memory of their GPUs."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.features.launch.report import list_too_large
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR)
def model_too_large(manifest: Manifest) -> Iterator[Violation]:
    """A model that cannot fit into the memory of the GPUs that the pods select.

    The job pulls its image, loads the model, and ends with `CUDA out of memory`. jobgen computes a lower bound: weights
    only for vLLM and SGLang, and also gradients and the states of Adam for a full fine-tuning by an example of
    transformers and for Megatron-LM. It knows the GPU by the label `nvidia.com/gpu.product` or the instance type in
    `nodeSelector`, and common models by name. If anything is unknown, such as quantization or an adapter, nothing is
    reported. jobgen never says that a model fits.

    Use more GPUs, shard the model further, or select GPUs with more memory.

    When to turn it off: if weights are read in a lower precision than the name of the model says, or are offloaded
    by a patch that jobgen cannot see, suppress it on the command with the measured memory.
    """
    return list_too_large(manifest)
