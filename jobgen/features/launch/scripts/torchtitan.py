"""torchtitan: degrees of parallelism whose product is the number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from jobgen.features.launch.arguments import Arguments, Invariant, Number, find_faults, read_arguments
from jobgen.features.launch.config_files import as_number, get_value, read_config
from jobgen.features.launch.values import Fault, Pods, Program, World

DEGREES = {
    "replicate": "data_parallel_replicate_degree",
    "shard": "data_parallel_shard_degree",
    "cp": "context_parallel_degree",
    "tp": "tensor_parallel_degree",
    "pp": "pipeline_parallel_degree",
    "ep": "expert_parallel_degree",
}
_DEFAULTS = {"replicate": 1, "shard": -1, "cp": 1, "tp": 1, "pp": 1, "ep": 1}
# The degrees that a config of the registry sets. Of one that is not here, only what the command says is known.
_CONFIGS: Mapping[str, Mapping[str, int]] = {
    "deepseek_v3_16b": {"ep": 8},
    "deepseek_v3_671b": {"ep": 2},
    "deepseek_v3_debugmodel": {},
    "gpt_oss_120b": {},
    "gpt_oss_20b": {},
    "llama3_405b": {"tp": 8},
    "llama3_70b": {"tp": 8},
    "llama3_8b": {},
    "llama3_debugmodel": {},
    "qwen3_0_6b": {},
    "qwen3_14b": {},
    "qwen3_1_7b": {},
    "qwen3_30b_a3b": {},
    "qwen3_32b": {},
}
_AT = " ".join(f"parallelism.{name}" for name in DEGREES.values())
_NAMES = "dp_replicate({replicate}) * dp_shard({shard}) * cp({cp}) * tp({tp}) * pp({pp})"
_TABLE = (
    Invariant(
        "least",
        lambda least: least >= 1,
        "a degree of parallelism is {least} (torchtitan: `Parallelism degree should be >= 1, except for dp_shard`); "
        "use 1 or more",
        _AT,
    ),
    Invariant(
        "world given least",
        lambda world, given, least: least < 1 or world % given == 0,
        "the product of the degrees of parallelism is {given}, which does not divide the {world} processes of this job "
        "(torchtitan: `Invalid parallel dims: … != WORLD_SIZE({world})`); use degrees whose product divides {world}",
        _AT,
    ),
    Invariant(
        "world given all shard least",
        lambda world, given, total, _shard, least: least < 1 or world % given or total == world,
        "the degrees of parallelism are not those of {world} processes (torchtitan: `Invalid parallel dims: "
        f"{_NAMES} != WORLD_SIZE({{world}})`); write `--parallelism.data_parallel_shard_degree=-1`, which is the rest",
        _AT,
    ),
    Invariant(
        "world all ep region",
        lambda world, total, ep, region: total != world or ep < 1 or region % ep == 0,
        "`--parallelism.expert_parallel_degree` {ep} does not divide the {region} ranks that shard the experts "
        "(torchtitan: `expert_parallel_degree ({ep}) must divide dp_shard * cp * tp ({region})`); use a divisor of "
        "{region}",
        "parallelism.expert_parallel_degree",
    ),
)


def check(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the degrees of torchtitan's command line and its TOML file with the processes of the launcher."""
    if not is_titan(program):
        return
    options = read_arguments(program.words)
    numbers = read_degrees(program, options, world)
    yield from find_faults(_TABLE, numbers, options.words, program, pods)


def is_titan(program: Program) -> bool:
    """Return True if a program is torchtitan's, by its module or by its options."""
    return program.name.startswith("torchtitan.") or any(
        (word.text or "").startswith("--parallelism.") for word in program.words
    )


def read_degrees(program: Program, options: Arguments, world: World) -> dict[str, Number]:
    """Return the degrees; those that are not given have the defaults of the config, if it is known."""
    config = read_config(program, options.text("job.config_file"))
    known = _DEFAULTS if config is not None else None
    name = options.text("config")
    if name is not None and name in _CONFIGS:
        known = {**_DEFAULTS, **_CONFIGS[name]}
    degrees: dict[str, int | None] = {}
    for short, long in DEGREES.items():
        written = get_value(config, f"parallelism.{long}")
        default = known[short] if known and written is None else as_number(written)
        degrees[short] = options.number(f"parallelism.{long}", default)
    shard, size = degrees["shard"], world.size
    others = [degrees[short] for short in ("replicate", "cp", "tp", "pp")]
    least = min((degree for degree in (*others, degrees["ep"]) if degree is not None), default=1)
    given = prod(degree for degree in (*others, shard if shard and shard > 0 else None) if degree)
    rest = [degree for degree in others if degree is not None]
    if shard == -1 and len(rest) == len(others) and size and least > 0 and size % prod(rest) == 0:
        shard = size // prod(rest)
    total = prod(rest) * shard if len(rest) == len(others) and shard and shard > 0 else None
    cp, tp = degrees["cp"], degrees["tp"]
    region = shard * cp * tp if shard and shard > 0 and cp and tp else None
    return {**degrees, "shard": shard, "world": size, "least": least, "given": given, "all": total, "region": region}
