"""Models that cannot fit: a certain lower bound of the bytes on a GPU above what the GPU has. Never that one fits."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch import hf_trainer, megatron, serving
from jobgen.features.launch.options import Arguments, compared_values, get_value, read_arguments
from jobgen.features.launch.values import Fault, Pods, Program, World, find_memory, find_model
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place

# Options with which less is on the GPU than the bound says, or that load something else.
_LESS_SERVING = (
    "quantization cpu_offload_gb load_format kv_transfer_config hf_overrides speculative_config offload num_layers "
    "override_neuron_config mem_fraction_cpu cpu_offload torchao_config json_model_override_args"
).split()
_LESS_TRAINING = "peft lora quant bit offload freeze frozen adapter tune layer config_name".split()
_ADAM = ("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused")
_FULL_TRAINING = ("run_clm.py", "run_mlm.py", "run_summarization.py", "run_translation.py", "run_fim.py")
_LESS_MEGATRON = (
    "use_megatron_fsdp use_torch_fsdp2 optimizer_cpu_offload use_precision_aware_optimizer exp_avg_dtype "
    "main_grads_dtype main_params_dtype exp_avg_sq_dtype grad_reduce_in_bf16 fp8_param_gather fp4_param_gather "
    "freeze_lm moe_layer_freq multi_latent_attention hybrid_layer_pattern hybrid_override_pattern "
    "decoder_first_pipeline_num_layers skip_train decoder_last_pipeline_num_layers pipeline_model_parallel_layout "
    "heterogeneous_layers_config_path linear_attention_freq moe_latent_size optimizer"
).split()


class Bound(NamedTuple):
    """The least bytes on one GPU, the arithmetic, and where the model is named."""

    bytes: float
    text: str
    node: Place


def list_bounds(program: Program, world: World, pods: Pods) -> Iterator[Bound]:
    """Yield the lower bound of a program whose model, precision and optimizer are known."""
    for find in (_bound_serving, _bound_trainer, _bound_megatron):
        found = find(program, world, pods)
        if found is not None:
            yield found


def check(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Yield a fault if the model cannot fit on the GPUs that the pods select."""
    memory = find_memory(pods.product) if pods.gpus else None
    for bound in list_bounds(program, world, pods) if memory else ():
        if memory and bound.bytes > memory:
            yield Fault(
                bound.node,
                f"the model cannot fit: {bound.text} = {show_bytes(bound.bytes)} on each GPU, and a GPU of "
                f"`{pods.product}` has at most {show_bytes(memory)}; use more GPUs, or GPUs with more memory",
                related=compared_values(pods),
            )


def show_bytes(number: float) -> str:
    """Return a number of bytes as people write it."""
    return f"{number / 1e9:.1f} GB"


def _bound_serving(program: Program, _world: World, pods: Pods) -> Bound | None:
    """Weights only: the bytes of the checkpoint over all GPUs of a replica."""
    server = serving.read_server(program)
    if server is None or not server.options.is_closed or any(name in server.options.words for name in _LESS_SERVING):
        return None
    model = find_model(server.model or "")
    tp, pp, dp = (server.sizes[name] for name in ("tp", "pp", "dp"))
    if model is None or not tp or not pp or not dp:
        return None
    # Ranks of data parallelism share experts, or all of them.
    ranks = tp * pp * dp
    size = 4 if server.options.text("dtype", "auto") in ("float32", "float") and model.bytes == 2 else model.bytes
    text = f"{model.parameters / 1e9:.2f} billion parameters x {size} bytes / {ranks} GPUs"
    word = next((server.options.words[name] for name in ("model", "model_path") if name in server.options.words), None)
    word = word or next(iter(server.options.rest), None)
    return Bound(model.parameters * size / ranks, text, word.node if word else program.node)


def _bound_trainer(program: Program, world: World, _pods: Pods) -> Bound | None:
    """Weights, gradients and Adam's two states of a full fine-tuning by an example of transformers."""
    if program.name not in _FULL_TRAINING or not world.size:
        return None
    options = read_arguments(program.words)
    if not options.is_closed or any(part in name for name in options.words for part in _LESS_TRAINING):
        return None
    model = find_model(options.text("model_name_or_path", "") or "")
    optimizer = options.text("optim", "adamw_torch")
    if model is None or model.bytes < 2 or optimizer not in _ADAM or options.has("do_train") is False:
        return None
    found = _count_trainer_bytes(program, options, world.size)
    if found is None:
        return None
    each, text = found
    text = f"{model.parameters / 1e9:.2f} billion parameters x {text}"
    return Bound(model.parameters * each, text, options.words["model_name_or_path"].node)


def _count_trainer_bytes(program: Program, options: Arguments, size: int) -> tuple[float, str] | None:
    """Return the bytes of a parameter on one GPU, at least, and how they are computed."""
    if "deepspeed" in options.words:
        config = hf_trainer.read_deepspeed(program, options)
        stage = get_value(config, "zero_optimization.stage") or 0
        zero = get_value(config, "zero_optimization") or {}
        is_half = any(
            get_value(config, f"{name}.enabled") is True
            or (get_value(config, f"{name}.enabled") == "auto" and options.has(name))
            for name in ("fp16", "bf16")
        )
        if config is None or any("offload" in str(key) or "quant" in str(key) for key in zero) or "optimizer" in config:
            return None
        if not is_half or "compression_training" in config or stage not in (0, 1, 2, 3) or "tensor_parallel" in config:
            return None
        if stage == 3:
            return 16 / size, f"16 bytes / {size} GPUs (ZeRO-3)"
        return (2 + 12 / size, f"(2 + 12 / {size}) bytes (ZeRO-{stage})") if stage else (16, "16 bytes (ZeRO-0)")
    if "fsdp" in options.words:
        # Whatever is sharded, all GPUs together hold one copy.
        return 6 / size, f"6 bytes / {size} GPUs (FSDP)"
    return 6, "6 bytes (weights and Adam's states in 16 bits on every GPU)"


def _bound_megatron(program: Program, world: World, _pods: Pods) -> Bound | None:
    """Weights, gradients and optimizer states of one rank; embeddings and norms are left out."""
    if program.name != "pretrain_gpt.py" or not world.size:
        return None
    options = read_arguments(program.words, megatron.FLAGS)
    others = (*megatron.ELSEWHERE, *_LESS_MEGATRON)
    if not options.is_closed or any(name in options.words for name in others) or not options.has("bf16"):
        return None
    sizes = megatron.read_sizes(options, world)
    tp, pp, dp, cp, layers, hidden, heads = (
        int(sizes[name] or 0) for name in ("tp", "pp", "dp", "cp", "layers", "hidden", "heads")
    )
    etp, ep = int(sizes["etp"] or 0), int(sizes["ep"] or 0)
    if not all((tp, pp, dp, cp, layers, hidden, heads, etp, ep)) or world.size % (etp * ep * pp):
        return None
    channels = options.number("kv_channels", hidden // heads) or 0
    groups = sizes["groups"] if sizes["grouped"] else heads
    attention = layers * hidden * channels * (2 * heads + 2 * int(groups or 1))
    gates = 3 if options.has("swiglu") else 2
    ffn = options.number("ffn_hidden_size", 4 * hidden if gates == 2 else 8 * hidden // 3) or 0
    experts = int(sizes["experts"] or 0)
    expert_ffn = options.number("moe_ffn_hidden_size", ffn) or 0
    is_sharded = bool(sizes["distributed"])
    dense = attention + (0 if experts else layers * gates * hidden * ffn)
    sparse = layers * experts * gates * hidden * expert_ffn
    expert_ranks = world.size // (etp * ep * pp)
    each = 6 + 12 / (dp * cp) if is_sharded else 18
    each_expert = 6 + 12 / expert_ranks if is_sharded else 18
    total = dense * each / (tp * pp) + sparse * each_expert / (etp * ep * pp)
    text = f"at least {dense / 1e9:.2f} billion parameters x {each:.4g} bytes / ({tp} x {pp})"
    if experts:
        text += f" + {sparse / 1e9:.2f} billion of experts x {each_expert:.4g} bytes / ({etp} x {ep} x {pp})"
    return Bound(total, text, options.words["num_layers"].node)
