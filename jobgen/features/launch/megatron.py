"""Megatron-LM: sizes of parallelism, layers, heads and batches of `pretrain_gpt.py` and the other scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.features.launch.options import Arguments, Invariant, Number, find_faults, read_arguments
from jobgen.features.launch.values import Fault, Pods, Program, World, is_before_blackwell
from jobgen.repo.shipped import read_data

NAMES = frozenset(f"pretrain_{model}.py" for model in ("gpt", "hybrid", "mamba", "vlm", "bert", "t5", "ict", "retro"))
# With one of these, sizes come from a checkpoint or a file, or the script is that of Megatron-DeepSpeed.
ELSEWHERE = (
    "use_checkpoint_args yaml_cfg heterogeneous_layers_config_path heterogeneous_layers_config_encoded_json deepspeed "
    "tensor_parallel_num_weight_shards ckpt_convert_format"
).split()
FLAGS = frozenset(read_data("launch.yaml")["options"]["megatron"]["flags"].split())
# The options that are numbers, with their defaults; None: not set.
NUMBERS: Mapping[str, tuple[str, int | None]] = read_data("launch.yaml")["megatron"]["numbers"]
_SWITCHES: Mapping[str, str] = read_data("launch.yaml")["megatron"]["switches"]
_VIRTUAL = (
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "pipeline_model_parallel_layout",
)
# With one of these, stages have different numbers of layers.
_UNEVEN = (
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
)

_WORLD = (
    Invariant(
        lambda world, _tp, _pp, _cp, model: model > 0 and world % model == 0,
        "tensor x pipeline x context parallel size {tp} x {pp} x {cp} = {model} does not divide the {world} processes "
        "of this job (Megatron-LM: `world size ({world}) is not divisible by total_model_size "
        "(total_model_size={model})`); use sizes whose product divides {world}",
        "tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size",
    ),
    Invariant(
        lambda world, _experts, model, _etp, _ep, _pp, expert_model: (
            not expert_model or world % model or world % expert_model == 0
        ),
        "expert tensor x expert x pipeline parallel size {etp} x {ep} x {pp} = {expert_model} does not divide the "
        "{world} processes (Megatron-LM: `world_size ({world}) is not divisible by "
        "expert_tensor_model_pipeline_parallel size ({expert_model})`); write a smaller "
        "`--expert-model-parallel-size`, or `--expert-tensor-parallel-size 1`",
        "expert_model_parallel_size expert_tensor_parallel_size",
    ),
    Invariant(
        lambda _world, mbs, gbs, dp: mbs <= 0 or gbs % (mbs * dp) == 0,
        "`--global-batch-size {gbs}` is not a multiple of the micro batch size {mbs} times the {dp} data parallel "
        "ranks (Megatron-LM: `global batch size ({gbs}) is not divisible by micro batch size ({mbs}) times data "
        "parallel size ({dp})`); use a multiple of {mbs_dp}",
        "global_batch_size micro_batch_size",
    ),
)
_MODEL = (
    Invariant(lambda mbs: mbs > 0, "`--micro-batch-size {mbs}` must be greater than 0", "micro_batch_size"),
    Invariant(
        lambda heads, tp: heads % tp == 0,
        "`--num-attention-heads {heads}` is not a multiple of the tensor parallel size {tp} (Megatron-LM: "
        "`num_attention_heads ({heads}) must be a multiple of tensor_model_parallel_size ({tp}).`); use a size that "
        "divides {heads}",
        "tensor_model_parallel_size",
    ),
    Invariant(
        lambda groups, tp, heads: heads % tp or groups % tp == 0 or tp % groups == 0,
        "`--num-query-groups {groups}` is neither a multiple nor a divisor of the tensor parallel size {tp} "
        "(Megatron-LM: `num_query_groups ({groups}) must be a multiple or divisor of tensor_model_parallel_size "
        "({tp}).`); use a size that divides {groups}",
        "num_query_groups",
    ),
    Invariant(
        lambda hidden, heads, no_channels: not no_channels or hidden % heads == 0,
        "`--hidden-size {hidden}` is not a multiple of the {heads} attention heads (Megatron-LM: `assert "
        "args.hidden_size % args.num_attention_heads == 0`); use a multiple, or write `--kv-channels`",
        "hidden_size",
    ),
    Invariant(
        lambda even_layers, pp: even_layers % pp == 0,
        "the {even_layers} layers cannot be divided among {pp} pipeline stages (Megatron-LM: `Number of layers should "
        "be divisible by the pipeline-model-parallel size`); use a size that divides {even_layers}",
        "pipeline_model_parallel_size num_layers",
    ),
    Invariant(
        lambda virtual_layers, pp, per_virtual: (
            virtual_layers % pp == 0 and per_virtual > 0 and virtual_layers // pp % per_virtual == 0
        ),
        "{virtual_layers} layers on a pipeline of size {pp} cannot be divided into virtual stages of {per_virtual} "
        "(Megatron-LM: `number of layers per pipeline stage must be divisible number of layers per virtual pipeline "
        "stage`); use a number that divides the layers of a stage",
        "num_layers_per_virtual_pipeline_stage",
    ),
    Invariant(
        lambda vpp, pp, least_pp: vpp < 2 or pp >= least_pp,
        "{vpp} virtual stages per pipeline rank need a pipeline parallel size of at least {least_pp}, and it is {pp} "
        "(Megatron-LM: `When interleaved schedule is used, pipeline-model-parallel size should be greater than 1`); "
        "write a greater `--pipeline-model-parallel-size`, or remove the virtual stages",
        "num_layers_per_virtual_pipeline_stage num_virtual_stages_per_pipeline_rank",
    ),
    Invariant(
        lambda virtual_options: virtual_options < 2,
        "No more than one of `--num-layers-per-virtual-pipeline-stage`, `--num-virtual-stages-per-pipeline-rank` and "
        "`--pipeline-model-parallel-layout` can be set; remove the others",
        "num_layers_per_virtual_pipeline_stage num_virtual_stages_per_pipeline_rank",
    ),
    Invariant(
        lambda ep, is_dense: ep < 2 or not is_dense,
        "`--expert-model-parallel-size {ep}` needs experts (Megatron-LM: `num_experts must be non None to use expert "
        "model parallelism`); write `--num-experts`, or remove it",
        "expert_model_parallel_size",
    ),
    Invariant(
        lambda experts, ep: ep < 2 or experts % ep == 0,
        "`--num-experts {experts}` is not a multiple of the expert parallel size {ep} (Megatron-LM: `Number of "
        "experts should be a multiple of expert model parallel_size.`); use a size that divides {experts}",
        "expert_model_parallel_size",
    ),
    Invariant(
        lambda _experts, etp, unbiased: etp == 1 or unbiased,
        "experts with a bias cannot be split among {etp} tensor parallel ranks (Megatron-LM: `Bias in Moe is only "
        "supported when ETP==1`); write `--disable-bias-linear` or `--expert-tensor-parallel-size 1`",
        "expert_tensor_parallel_size num_experts",
    ),
    Invariant(
        lambda seq, cp: cp < 2 or seq % (2 * cp) == 0,
        "`--seq-length {seq}` is not a multiple of twice the context parallel size {cp} (Megatron-LM: `seq-length "
        "should be a multiple of 2 * context-parallel-size if context-parallel-size > 1.`); use a multiple",
        "seq_length",
    ),
    Invariant(
        lambda seq, positions: positions >= seq,
        "`--max-position-embeddings {positions}` is less than the sequence length {seq} (Megatron-LM: "
        "`max_position_embeddings ({positions}) must be greater than or equal to seq_length ({seq}).`); use at least "
        "{seq}",
        "max_position_embeddings",
    ),
    Invariant(
        lambda gathers, shards: not gathers or shards,
        "`--overlap-param-gather` needs the distributed optimizer (Megatron-LM: `--overlap-param-gather only "
        "supported with distributed optimizer, megatron fsdp, or dist_muon`); write `--use-distributed-optimizer`",
        "overlap_param_gather",
    ),
    Invariant(
        lambda gathers, shards, reduces: not gathers or not shards or reduces,
        "`--overlap-param-gather` needs `--overlap-grad-reduce` (Megatron-LM: `Must use --overlap-param-gather with "
        "--overlap-grad-reduce`); write both",
        "overlap_param_gather",
    ),
    Invariant(
        lambda latent, grouped: not (latent and grouped),
        "`--multi-latent-attention` and `--group-query-attention` cannot be combined (Megatron-LM: `Group query "
        "attention is mutually exclusive with multi latent attention.`); remove one",
        "group_query_attention",
    ),
    Invariant(
        lambda half, bf16: not (half and bf16),
        "`--fp16` and `--bf16` cannot be combined; remove one",
        "fp16",
    ),
)
_FSDP = tuple(
    Invariant(holds, f"`--use-torch-fsdp2` {text}", "use_torch_fsdp2")
    for text, holds in {
        "is not supported with pipeline parallelism; remove one of them": lambda torch_fsdp, pp: (
            not torch_fsdp or pp == 1
        ),
        "is not supported with expert parallelism; remove one of them": lambda torch_fsdp, ep: (
            not torch_fsdp or ep == 1
        ),
        "is not supported with MCore's distributed optimizer; remove `--use-distributed-optimizer`": (
            lambda torch_fsdp, distributed: not (torch_fsdp and distributed)
        ),
        "is not supported with gradient accumulation fusion; write `--no-gradient-accumulation-fusion`": (
            lambda torch_fsdp, unfused: not torch_fsdp or unfused
        ),
        "requires `--untie-embeddings-and-output-weights`; write both": lambda torch_fsdp, untied: (
            not torch_fsdp or untied
        ),
        "is not supported with `--fp16` yet; write `--bf16`": lambda torch_fsdp, half: not (torch_fsdp and half),
    }.items()
)


def check_megatron(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the sizes of Megatron-LM with each other, and with the processes that the launcher starts."""
    if program.name not in NAMES:
        return
    options = read_arguments(program.words, FLAGS)
    if any(name in options.words for name in ELSEWHERE):
        return
    numbers = read_sizes(options, world)
    if any((numbers[name] or 1) < 1 for name in ("tp", "pp", "cp", "ep", "heads", "groups", "etp")):
        return
    if options.is_closed and "micro_batch_size" not in options.words:
        yield Fault(program.node, "`--micro-batch-size` is missing, which Megatron-LM requires; write it")
    yield from find_faults((*_WORLD, *_MODEL, *_FSDP), numbers, options.words, program, pods)
    yield from _check_connections(options, numbers, program, pods)


def read_sizes(options: Arguments, world: World) -> dict[str, Number]:
    """Return the numbers of the tables by name."""
    sizes: dict[str, Number] = {short: options.number(name, default) for short, (name, default) in NUMBERS.items()}
    sizes |= {short: options.has(name) for short, name in _SWITCHES.items()}
    tp, pp, cp, ep = (options.number(NUMBERS[name][0], 1) for name in ("tp", "pp", "cp", "ep"))
    mbs, layers, experts = (options.number(name, 0) for name in ("micro_batch_size", "num_layers", "num_experts"))
    model = tp * pp * cp if tp and pp and cp else None
    dp = world.size // model if world.size and model and world.size % model == 0 else None
    etp = options.number("expert_tensor_parallel_size", tp)
    virtual = [name for name in _VIRTUAL if name in options.words]
    counted = None
    if layers and options.is_closed and not any(name in options.words for name in _UNEVEN):
        counted = layers + sum(
            bool(options.has(f"account_for_{part}_in_pipeline_split")) for part in ("embedding", "loss")
        )
    each = options.number("num_layers_per_virtual_pipeline_stage")
    vpp = options.number("num_virtual_stages_per_pipeline_rank")
    if virtual == ["num_layers_per_virtual_pipeline_stage"] and counted and pp and each and counted % (pp * each) == 0:
        vpp = counted // (pp * each)
    shards = sizes["distributed"] or sizes["fsdp"]
    return sizes | {
        "world": world.size,
        "model": model,
        "dp": dp,
        "mbs_dp": mbs * dp if mbs and dp else None,
        "etp": etp,
        "experts": experts or None,
        "is_dense": None if experts is None else experts == 0,
        "expert_model": etp * ep * pp if etp and ep and pp else None,
        "groups": options.number("num_query_groups", 1) if sizes["grouped"] else None,
        "no_channels": ("kv_channels" not in options.words) if options.is_closed else None,
        "shards": shards if options.text("optimizer", "adam") == "adam" else None,
        "virtual_options": len(virtual),
        "even_layers": None if virtual else counted,
        "virtual_layers": counted if virtual == ["num_layers_per_virtual_pipeline_stage"] else None,
        "vpp": vpp,
        "least_pp": None if sizes["no_overlap"] is None else 2 + bool(sizes["no_overlap"]),
    }


def _check_connections(
    options: Arguments, sizes: Mapping[str, Number], program: Program, pods: Pods
) -> Iterator[Fault]:
    """Check CUDA_DEVICE_MAX_CONNECTIONS, which tensor and context parallelism need on GPUs before Blackwell."""
    word = program.variable("CUDA_DEVICE_MAX_CONNECTIONS")
    if options.has("use_torch_fsdp2") and word is not None and word.text == "1":
        yield Fault(
            word.node,
            "`CUDA_DEVICE_MAX_CONNECTIONS` is `1` with `--use-torch-fsdp2` (Megatron-LM: `FSDP always requires "
            "CUDA_DEVICE_MAX_CONNECTIONS value large than one`); remove the variable",
        )
    is_split = max(sizes["tp"] or 1, sizes["cp"] or 1) > 1
    others = ("use_torch_fsdp2", "use_megatron_fsdp", "overlap_moe_expert_parallel_comm")
    if not is_split or not is_before_blackwell(pods.product) or any(options.has(name) is not False for name in others):
        return
    if word is None or (word.text is not None and word.text != "1"):
        found = "is not set" if word is None else f"is `{word.text}`"
        # The image can set it, too.
        yield Fault(
            program.node if word is None else word.node,
            f"`CUDA_DEVICE_MAX_CONNECTIONS` {found} (Megatron-LM: `Using tensor model parallelism or context "
            "parallelism require setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1`); set it to `1` "
            "in `env`",
            is_error=word is not None,
        )
