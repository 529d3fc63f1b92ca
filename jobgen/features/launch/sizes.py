"""Parameters and attention heads of known models, and the memory of GPUs, by the names that manifests have for them."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.model.lazy_re import lazy_pattern


class Model(NamedTuple):
    """A model: its parameters, at least; its attention heads; the bytes of a parameter in its checkpoint, at least."""

    parameters: int
    heads: int
    bytes: int = 2
    is_sparse: bool = False
    """True if it has experts."""


# Millions of parameters, rounded down, attention heads, and names without what _VARIANT takes out; `+`: with experts.
_MODELS = """
6738 32 meta-llama/llama-2-7b
13015 40 meta-llama/llama-2-13b
68976 64 meta-llama/llama-2-70b
33743 64 codellama/codellama-34b
8030 32 meta-llama/llama-3-8b meta-llama/llama-3.1-8b deepseek-ai/deepseek-r1-distill-llama-8b
70553 64 meta-llama/llama-3-70b meta-llama/llama-3.1-70b meta-llama/llama-3.3-70b
70553 64 deepseek-ai/deepseek-r1-distill-llama-70b
405853 128 meta-llama/llama-3.1-405b
1235 32 meta-llama/llama-3.2-1b
3212 24 meta-llama/llama-3.2-3b
7241 32 mistralai/mistral-7b-v0.1 mistralai/mistral-7b-v0.2
7248 32 mistralai/mistral-7b-v0.3
46702+ 32 mistralai/mixtral-8x7b-v0.1
140630+ 48 mistralai/mixtral-8x22b-v0.1
122610 96 mistralai/mistral-large-2407
494 14 qwen/qwen2.5-0.5b
1543 12 qwen/qwen2.5-1.5b
3085 16 qwen/qwen2.5-3b
7615 28 qwen/qwen2.5-7b
14770 40 qwen/qwen2.5-14b
32763 40 qwen/qwen2.5-32b qwen/qwq-32b
72706 64 qwen/qwen2.5-72b
596 16 qwen/qwen3-0.6b
1720 16 qwen/qwen3-1.7b
4022 32 qwen/qwen3-4b
8190 32 qwen/qwen3-8b
14768 40 qwen/qwen3-14b
32762 64 qwen/qwen3-32b
30532+ 32 qwen/qwen3-30b-a3b
235093+ 64 qwen/qwen3-235b-a22b
2506 8 google/gemma-2b
8537 16 google/gemma-7b
2614 8 google/gemma-2-2b
9241 16 google/gemma-2-9b
27227 32 google/gemma-2-27b
14659 40 microsoft/phi-4
3821 32 microsoft/phi-3-mini-4k
6921 71 tiiuae/falcon-7b
41303 128 tiiuae/falcon-40b
178557 232 tiiuae/falcon-180b
11846 40 eleutherai/pythia-12b
1100 32 tinyllama/tinyllama-1.1b-v1.0
671026+ 128 deepseek-ai/deepseek-v3 deepseek-ai/deepseek-r1
1557 25 openai-community/gpt2-xl gpt2-xl
65719 72 facebook/opt-66b
"""
# Fine-tunes of the same organization have the dimensions of their base.
_VARIANT = lazy_pattern(r"(?<=/)meta-|-(?:instruct|chat|it|hf)(?=-|\Z)")
_FP8 = ("deepseek-ai/deepseek-v3", "deepseek-ai/deepseek-r1")


def _read_models() -> dict[str, Model]:
    found: dict[str, Model] = {}
    for line in _MODELS.split("\n"):
        millions, heads, *names = line.split() or ("0", "0")
        for name in names:
            size = 1 if name in _FP8 else 2
            found[name] = Model(int(millions.rstrip("+")) * 10**6, int(heads), size, millions[-1] == "+")
    return found


_BY_NAME = _read_models()


def find_model(name: str) -> Model | None:
    """Return a model by the name that it has at Hugging Face; None if it is not known, or can be quantized."""
    return _BY_NAME.get(_VARIANT.sub("", name.lower()))


# GPU products by words of their name, as in the label `nvidia.com/gpu.product`, and their memory in MiB, at most; the
# first that fits counts. `nvidia-tesla-a100` and such are names of GKE.
_PRODUCTS = (
    ("v100-sxm2-16gb", 16384),
    ("v100-pcie-16gb", 16384),
    ("v100", 32768),
    ("p100", 16384),
    ("t4", 16384),
    ("a10g", 24576),
    ("a10", 24576),
    ("l40s", 49152),
    ("l40", 49152),
    ("l4", 24576),
    ("a40", 49152),
    ("a30", 24576),
    ("nvidia-tesla-a100", 40960),
    ("a100-sxm4-40gb", 40960),
    ("a100-pcie-40gb", 40960),
    ("a100", 81920),
    ("h100-80gb", 81920),
    ("h100-mega-80gb", 81920),
    ("h100-pcie", 81920),
    ("h100", 98304),
    ("gh200", 147456),
    ("h200", 144384),
    ("gb200", 196608),
    ("b200", 184320),
    ("gb300", 294912),
    ("b300", 294912),
    ("rtx-pro-4500", 32768),
    ("rtx-pro-6000", 98304),
)
# Instance types of AWS by family, machine types of Google Cloud and of Azure by their start: the product.
_MACHINES = (
    ("g4dn.", "t4"),
    ("p3dn.", "v100"),
    ("p3.", "v100-sxm2-16gb"),
    ("g5.", "a10g"),
    ("g6.", "l4"),
    ("gr6.", "l4"),
    ("g6f.", "l4"),
    ("g6e.", "l40s"),
    ("g7.", "rtx-pro-4500"),
    ("g7e.", "rtx-pro-6000"),
    ("p4d.", "a100-sxm4-40gb"),
    ("p4de.", "a100"),
    ("p5.", "h100-80gb"),
    ("p5e.", "h200"),
    ("p5en.", "h200"),
    ("p6-b200.", "b200"),
    ("p6-b300.", "b300"),
    ("g2-standard-", "l4"),
    ("a2-highgpu-", "a100-sxm4-40gb"),
    ("a2-megagpu-", "a100-sxm4-40gb"),
    ("a2-ultragpu-", "a100"),
    ("a3-highgpu-", "h100-80gb"),
    ("a3-megagpu-", "h100-80gb"),
    ("a3-edgegpu-", "h100-80gb"),
    ("a3-ultragpu-", "h200"),
    ("a4-highgpu-", "b200"),
    ("standard_nd96asr_v4", "a100-sxm4-40gb"),
    ("standard_nd96amsr_a100_v4", "a100"),
    ("standard_nc24ads_a100_v4", "a100"),
    ("standard_nc48ads_a100_v4", "a100"),
    ("standard_nc96ads_a100_v4", "a100"),
    ("standard_nc40ads_h100_v5", "h100"),
    ("standard_nc80adis_h100_v5", "h100"),
    ("standard_nd96isr_h100_v5", "h100-80gb"),
)
_BLACKWELL = ("b200", "gb200", "b300", "gb300", "rtx-pro-4500", "rtx-pro-6000")


def _find_product(product: str) -> tuple[str, int] | None:
    name = product.lower()
    name = next((family for start, family in _MACHINES if name.startswith(start)), name)
    return next((each for each in _PRODUCTS if f"-{each[0]}-" in f"-{name}-"), None)


def find_memory(product: str) -> int | None:
    """Return the bytes that a GPU of a product or instance type has at most; None if it is not known."""
    found = _find_product(product)
    return found[1] * 2**20 if found else None


def is_before_blackwell(product: str) -> bool:
    """Return True if a GPU certainly has a compute capability below 10."""
    found = _find_product(product)
    return found is not None and found[0] not in _BLACKWELL
