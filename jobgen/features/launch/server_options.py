"""Options of vLLM and SGLang: commands and names with a slip, and values that the servers refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.launch.options import Arguments
from jobgen.features.launch.values import Fault, Program, Word

_COMMANDS = ("bench", "chat", "collect-env", "complete", "run-batch", "serve")
_TYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
_MEANT_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_FRACTIONS = {"gpu_memory_utilization": "vLLM", "mem_fraction_static": "SGLang"}
"""The options with a part of the memory of a GPU, and the server that refuses more than all of it."""
_VLLM = frozenset(
    """api_key chat_template data_parallel_size distributed_executor_backend download_dir dtype enforce_eager
    gpu_memory_utilization kv_cache_dtype load_format max_model_len max_num_batched_tokens max_num_seqs
    pipeline_parallel_size quantization served_model_name tensor_parallel_size tokenizer tool_call_parser
    trust_remote_code""".split()
)
_SGLANG = frozenset(
    """api_key attention_backend chat_template context_length dtype mem_fraction_static model_path quantization
    served_model_name tensor_parallel_size tokenizer_path tool_call_parser trust_remote_code""".split()
)


def check_command(words: Sequence[Word]) -> Iterator[Fault]:
    """Report a command of vLLM that is one slip away from `serve`, or from another one."""
    text = words[0].text if words else None
    if text is None or text in _COMMANDS or text[:1] == "-":
        return
    # Imported late: most commands are right.
    from jobgen.model.meant import find_meant

    meant = "serve" if text == "server" else find_meant(text, _COMMANDS)
    if meant:
        message = f"`{text}` is not a command of vLLM (`invalid choice: '{text}'`); did you mean `{meant}`?"
        yield Fault(words[0].node, message)


def check_options(program: Program, options: Arguments, *, is_sglang: bool) -> Iterator[Fault]:
    """Report options that a server does not know, and values that it refuses."""
    title = "SGLang" if is_sglang else "vLLM"
    for name, word in options.words.items():
        text = word.text or ""
        if name == "dtype" and text and text not in _TYPES:
            meant = _MEANT_TYPES.get(text.lower(), "")
            advice = f"write `{meant}`" if meant else f"use {', '.join(f'`{each}`' for each in _TYPES)}"
            message = f"`{text}` is not a type that {title} knows (`invalid choice: '{text}'`); {advice}"
            yield Fault(word.node, message)
        elif name in _FRACTIONS and _FRACTIONS[name] == title and _is_above_one(text):
            option = name.replace("_", "-")
            message = f"`--{option}` is a part of the memory of a GPU, and {text} is more than all of it"
            yield Fault(word.node, f"{message}; write a number below 1, such as `0.9`")
        else:
            yield from _check_name(name, word, title, _SGLANG if is_sglang else _VLLM)
    given = options.words.keys() & {"model_path", "model", "config"}
    if is_sglang and options.is_closed and not given and not options.rest:
        message = "SGLang gets no model (`the following arguments are required: --model-path`)"
        yield Fault(program.node, f"{message}; write `--model-path` with its name")


def _is_above_one(text: str) -> bool:
    try:
        return len(text) < 20 and float(text) > 1
    except ValueError:
        return False


def _check_name(name: str, word: Word, title: str, known: frozenset[str]) -> Iterator[Fault]:
    # The start of a name is enough, and others can be those of a release.
    if len(name) < 5 or any(each.startswith(name) for each in known):
        return
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    meant = find_meant(name, known)
    if meant:
        message = f"`--{name.replace('_', '-')}` is not an option of {title} (`unrecognized arguments`)"
        yield Fault(word.node, f"{message}; did you mean `--{meant.replace('_', '-')}`?", False)
