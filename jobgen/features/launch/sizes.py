"""Parameters and attention heads of known models, and the memory of GPUs, by the names that manifests have for them."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.shipped import read_data

# Fine-tunes of the same organization have the dimensions of their base.
_VARIANT = lazy_pattern(r"(?<=/)meta-|-(?:instruct|chat|it|hf)(?=-|\Z)")


class Model(NamedTuple):
    """A model: its parameters, at least; its attention heads; the bytes of a parameter in its checkpoint, at least."""

    parameters: int
    heads: int
    bytes: int = 2


def find_model(name: str) -> Model | None:
    """Return a model by the name that it has at Hugging Face; None if it is not known, or can be quantized."""
    found = read_data("launch.yaml")["models"].get(_VARIANT.sub("", name.lower()))
    return Model(found["millions"] * 10**6, found["heads"], found.get("bytes", 2)) if found else None


def _find_product(product: str) -> str:
    known, name = read_data("launch.yaml"), product.lower()
    name = next((family for start, family in known["machines"].items() if name.startswith(start)), name)
    return next((each for each in known["memory"] if f"-{each}-" in f"-{name}-"), "")


def find_memory(product: str) -> int | None:
    """Return the bytes that a GPU of a product or instance type has at most; None if it is not known."""
    found = _find_product(product)
    return int(read_data("launch.yaml")["memory"][found]) * 2**20 if found else None


def is_before_blackwell(product: str) -> bool:
    """Return True if a GPU certainly has a compute capability below 10."""
    found = _find_product(product)
    return bool(found) and found not in read_data("launch.yaml")["blackwell"]
