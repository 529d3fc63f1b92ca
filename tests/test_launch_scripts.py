"""Training scripts and servers: what their frameworks refuse is reported, and nothing that is unknown."""

import json

import pytest

from jobgen import explain, lint
from jobgen.features.launch.describe import describe_launches
from jobgen.k8s.objects import Manifest
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster

MEGATRON = (
    "pretrain_gpt.py --num-layers 48 --hidden-size 6144 --num-attention-heads 48 --seq-length 4096 --bf16 "
    "--max-position-embeddings 4096 --micro-batch-size 1 --use-distributed-optimizer"
)
STAGES = "--pipeline-model-parallel-size 4"
TITAN = "-m torchtitan.train --module llama3 --config"
CLM = "run_clm.py --output_dir /out --per_device_train_batch_size 4"
H100 = "NVIDIA-H100-80GB-HBM3"
RAY = "from ray.train import ScalingConfig\nconfig = ScalingConfig({})\n"
SERVE = """applications:
- name: llm
  import_path: ray.serve.llm:build_openai_app
  args:
    llm_configs:
    - model_loading_config: {model_id: llama, model_source: meta-llama/Llama-3.1-70B-Instruct}
      engine_kwargs: {SIZES}
"""
JAX = "import jax\njax.distributed.initialize({})\n"

# Two pods with 8 GPUs each, torchrun, a script, files, and a part of the message; nothing if nothing may be said.
SCRIPTS = [
    (f"{MEGATRON} --tensor-model-parallel-size 4", {}, ""),
    (f"{MEGATRON} --tensor-model-parallel-size 3", {}, "world size (16) is not divisible by total_model_size"),
    (f"{MEGATRON} --tensor-model-parallel-size $TP", {}, ""),
    (f"{MEGATRON} --tensor-model-parallel-size 3 --use-checkpoint-args", {}, ""),
    (f"{MEGATRON} --tensor-model-parallel-size 3 $EXTRA_ARGS", {}, "world size (16)"),
    (f"{MEGATRON} $EXTRA_ARGS", {}, ""),
    (f"{MEGATRON} --load $CKPT --pipeline-model-parallel-size 3", {}, "is not divisible"),
    (f"{MEGATRON.replace('pretrain_gpt', 'pretrain')} --tensor-model-parallel-size 3", {}, ""),
    (f"{MEGATRON} --global-batch-size 24", {}, "`--global-batch-size 24` is not a multiple"),
    (f"{MEGATRON} --expert-model-parallel-size 2", {}, "num_experts must be non None"),
    (f"{MEGATRON} --num-experts 8 --tensor-model-parallel-size 2", {}, "Bias in Moe"),
    (f"{MEGATRON} --num-experts 8 --tensor-model-parallel-size 2 --disable-bias-linear", {}, ""),
    (
        f"{MEGATRON} --num-layers-per-virtual-pipeline-stage 5 --pipeline-model-parallel-size 2",
        {},
        "virtual stages of 5",
    ),
    (f"{MEGATRON} --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2", {}, ""),
    (f"{MEGATRON} --context-parallel-size 16 --seq-length 4080", {}, "twice the context parallel size"),
    (
        f"{MEGATRON} --group-query-attention --num-query-groups 3 --tensor-model-parallel-size 2",
        {},
        "num_query_groups (3)",
    ),
    (f"{MEGATRON} --overlap-param-gather", {}, "Must use --overlap-param-gather with --overlap-grad-reduce"),
    (f"{MEGATRON} --tensor-model-parallel-size 0", {}, ""),
    (f"{TITAN} llama3_8b --parallelism.tensor_parallel_degree 8", {}, ""),
    (f"{TITAN} llama3_8b --parallelism.tensor_parallel_degree=3", {}, "does not divide the 16 processes"),
    (f"{TITAN} llama3_8b --parallelism.data_parallel_shard_degree 8", {}, "!= WORLD_SIZE(16)"),
    (f"{TITAN} mine --parallelism.data_parallel_shard_degree 8", {}, ""),
    (f"{TITAN} mine --parallelism.data_parallel_shard_degree 32", {}, "does not divide"),
    (f"{TITAN} llama3_8b --parallelism.expert_parallel_degree 3", {}, "expert_parallel_degree (3) must divide"),
    (f"{TITAN} llama3_8b --parallelism.tensor_parallel_degree 0", {}, "Parallelism degree should be >= 1"),
    (
        "train.py --job.config_file /f/t.toml --parallelism.tensor_parallel_degree 2",
        {"t.toml": "[parallelism]\npipeline_parallel_degree = 3\n"},
        "does not divide",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4}'},
        "",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 60, "train_micro_batch_size_per_gpu": 4}'},
        "has to be greater than 0",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 68, "train_micro_batch_size_per_gpu": 4}'},
        "68 != 4 * 1 * 16`); use a multiple of 4 x 16 = 64, such as `train_batch_size: 64`",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 100}'},
        "100 != 6 * 1 * 16`); use a multiple of 16, such as `train_batch_size: 96`",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 100, "gradient_accumulation_steps": 2}'},
        "100 != 3 * 2 * 16`); use a multiple of 2 x 16 = 32, such as `train_batch_size: 96`",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}'},
        "64 != 4 * 2 * 16`); write `train_batch_size: 128`, or remove it, so that DeepSpeed computes it",
    ),
    (
        "train.py --deepspeed_config /f/ds.json --pipeline-parallel-size 2",
        {"ds.json": '{"train_batch_size": 68, "train_micro_batch_size_per_gpu": 4}'},
        "",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"zero_optimization": {"stage": 3}}'},
        "Either train_batch_size",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 16, "zero_optimization": {"stage": 4}}'},
        "is 4",
    ),
    (
        "train.py --deepspeed_config /f/ds.json",
        {"ds.json": '{"train_batch_size": 16, "fp16": {"enabled": true}, "bf16": {"enabled": true}}'},
        "`fp16` and `bf16`",
    ),
    ("train.py --deepspeed_config /f/ds.json", {"ds.json": "{not json"}, "is not JSON"),
    ("train.py --deepspeed_config /elsewhere/ds.json", {"ds.json": "{}"}, ""),
    (f"{CLM} --deepspeed /f/ds.json", {"ds.json": '{"train_batch_size": "auto"}'}, ""),
    (f"{CLM} --deepspeed /f/ds.json", {"ds.json": '{"train_batch_size": 128}'}, "`train_batch_size` is 128"),
    (
        f"{CLM} --deepspeed /f/ds.json",
        {"ds.json": '{"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}'},
        "`bf16.enabled` is true",
    ),
    (
        f"{CLM} --deepspeed /f/ds.json --learning_rate 1e-4",
        {"ds.json": '{"optimizer": {"params": {"lr": 0.0001}}}'},
        "",
    ),
    (f"{CLM} --fp16 --bf16", {}, "At most one of fp16 and bf16"),
    (f"{CLM} --fp16 False --bf16 True", {}, ""),
    (f"{CLM} --fsdp 'full_shard auto_wrap'", {}, ""),
    (f"{CLM} --fsdp full", {}, "`full` is not an option of `--fsdp`"),
    (f"{CLM} --load_best_model_at_end --eval_strategy steps --eval_steps 200", {}, "`--save_steps 500`"),
    (f"{CLM} --lr_scheduler_type reduce_lr_on_plateau", {}, "requires an eval strategy"),
    (f"{CLM} --dataloader_prefetch_factor 2", {}, "`--dataloader_num_workers`"),
    (f"{CLM} --dataloader_prefetch_factor 2 --dataloader_num_workers 4", {}, ""),
    ("train.py --fp16 --bf16", {}, ""),
    ("main.py fit --trainer.devices 8 --trainer.num_nodes 2", {}, ""),
    (
        "main.py fit --trainer.devices auto --trainer.num_nodes 3",
        {},
        "the product (8 * 3) does not match the world size (16)",
    ),
    ("main.py fit --trainer.devices 16 --trainer.num_nodes 2", {}, "You requested gpu"),
    ("main.py fit --trainer.devices 1 --config c.yaml", {}, ""),
    (
        "main.py fit --config /f/c.yaml --trainer.num_nodes 2",
        {"c.yaml": "trainer: {devices: 4}\n"},
        "the product (4 * 2)",
    ),
    ("main.py fit --trainer.devices 1 --trainer.accelerator cpu", {}, ""),
]
# A file of a Job with two pods, or of a RayJob with two workers of 8 GPUs and 16 CPUs.
CALLS = [
    ("Job", JAX.format('"job-0.svc:1", 2, 0'), ""),
    ("Job", JAX.format('"job-0.svc:1", num_processes=4, process_id=0'), "starts 2 processes"),
    ("Job", JAX.format('"other-0.svc:1", num_processes=4, process_id=0'), ""),
    ("Job", JAX.format('"job-0.svc:1", 2, process_id=2'), "process_id=2, num_processes=2"),
    ("Job", JAX.format('"job-0.svc:1", num_processes=count(), process_id=0'), ""),
    ("Job", "import jax\nif jax.device_count():\n    jax.distributed.initialize('job-0.svc:1', 4, 0)\n", ""),
    ("Job", "import jax\nN = 4\njax.distributed.initialize('job-0.svc:1', N, 0)\n", "starts 2 processes"),
    ("Job", "from jax import distributed as d\nd.initialize('job-0.svc:1', 0x" + "f" * 9000 + ", 0)\n", ""),
    ("Job", "(" * 5000 + "jax.distributed.initialize", ""),
    ("RayJob", RAY.format("num_workers=16, use_gpu=True"), ""),
    ("RayJob", RAY.format("num_workers=17, use_gpu=True"), "room for 16"),
    ("RayJob", RAY.format("num_workers=4, use_gpu=True"), "uses 4 of the 16 GPUs"),
    ("RayJob", RAY.format("num_workers=4, use_gpu=True") + "import ray.data\n", ""),
    ("RayJob", RAY.format("num_workers=2, use_gpu=True, resources_per_worker={'GPU': 9}"), "which no node"),
    ("RayJob", RAY.format("num_workers=16, resources_per_worker={'GPU': 1}"), "`use_gpu=False`"),
    ("RayJob", RAY.format("num_workers=16, use_gpu=True, placement_strategy='STRICT_PACK'"), "`STRICT_PACK`"),
    ("RayJob", RAY.format("num_workers=16, use_gpu=True, placement_strategy='STRICT_SPREAD'"), "`STRICT_SPREAD`"),
    ("RayJob", RAY.format("num_workers=32, use_gpu=True, resources_per_worker={'GPU': 0.5}"), ""),
    ("RayJob", RAY.format("num_workers=2, use_gpu=True, resources_per_worker={'GPU': 8, 'CPU': 17}"), "which no node"),
    ("RayJob", RAY.format("**options"), ""),
]
# A server on 8 GPUs of a Deployment, or on 2 x 8 of a LeaderWorkerSet.
SERVERS = [
    ("Deployment", "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 4 -pp 2", ""),
    ("Deployment", "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 8", "attention heads (28)"),
    ("Deployment", "vllm serve Qwen/Qwen2.5-7B-Instruct-AWQ -tp 8", ""),
    ("Deployment", "vllm serve ./model -tp 16", "World size (16) is larger than the number of available GPUs (8)"),
    ("Deployment", "vllm serve ./model -tp 4", "uses 4 of 8 GPUs"),
    ("Deployment", "vllm serve ./model -tp 4 -dp 2", ""),
    ("Deployment", "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve ./model -tp 4", ""),
    ("Deployment", "ray start --address head:6379 && vllm serve m -tp 16 --distributed-executor-backend ray", ""),
    ("Deployment", "vllm serve m --config unknown.yaml", ""),
    ("Deployment", "vllm bench serve m -tp 64", ""),
    ("LeaderWorkerSet", "vllm serve ./model -tp 8 -pp 2 --distributed-executor-backend ray", ""),
    ("LeaderWorkerSet", "vllm serve ./model -tp 8 -pp 4 --distributed-executor-backend ray", "needs 32 GPUs"),
    ("LeaderWorkerSet", "ray start --head; vllm serve ./model -tp 8 -pp 2", ""),
    ("LeaderWorkerSet", "ray start --head; vllm serve ./model -tp 8 -pp 4", "needs 32 GPUs, and there are 16"),
    ("LeaderWorkerSet", "vllm serve ./model -tp 16 --nnodes 2 --node-rank $LWS_WORKER_INDEX", ""),
    ("LeaderWorkerSet", "vllm serve ./model -tp 16 --nnodes 3", "`--nnodes 3` on 2 pods"),
    ("LeaderWorkerSet", "python -m sglang.launch_server --model-path m --tp 16 --nnodes 2", ""),
    (
        "LeaderWorkerSet",
        "python -m sglang.launch_server --model-path m --tp 15 --nnodes 2",
        "must be divisible by number of nodes",
    ),
    ("LeaderWorkerSet", "python -m sglang.launch_server --model-path m --tp 16", "needs 16 GPUs"),
]
STATIC = "torchrun --nnodes=2 --nproc-per-node=8 --master-addr={} --node-rank={} train.py"
C10D = "torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint={}:29400 {} train.py"
ACCELERATE = (
    "accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --main_process_ip job-master-0 "
    "--main_process_port 1 --machine_rank {} train.py"
)
# Two pods of a PyTorchJob that meet at an address.
MEETINGS = [
    ("PyTorchJob", STATIC.format("job-master-0", "$RANK"), ""),
    ("PyTorchJob", STATIC.format("job-master-0.ml.svc", "$(PET_NODE_RANK)"), ""),
    ("PyTorchJob", STATIC.format("job-master-0", "0"), "`--node-rank 0` is the rank of 2 pods"),
    ("PyTorchJob", STATIC.format("job-master-0", "2"), "is not a rank of 2 nodes"),
    (
        "PyTorchJob",
        f"if [ $RANK = 0 ]; then {STATIC} else {STATIC} fi".replace("train.py", "train.py;").format(
            "job-master-0", "0", "job-master-0", "1"
        ),
        "",
    ),
    ("Job", STATIC.format("10.0.0.9", "0"), "write `$(JOB_COMPLETION_INDEX)`"),
    ("Job", STATIC.format("10.0.0.9", "$JOB_COMPLETION_INDEX"), ""),
    ("PyTorchJob", STATIC.replace(".run", ".launch").format("job-master-0", "0"), "`--node-rank 0`"),
    ("PyTorchJob", ACCELERATE.format("0"), "`--machine_rank 0` is the rank of 2 pods"),
    ("PyTorchJob", ACCELERATE.format("$RANK"), ""),
    ("PyTorchJob", C10D.format("job-master-0", "--node-rank=0"), ""),
    ("PyTorchJob", C10D.format("job-worker-0", ""), ""),
    ("PyTorchJob", C10D.format("job-worker-1", ""), "`job-worker-1`, where the 2 pods meet, is not a pod of this job"),
    ("PyTorchJob", C10D.format("other-master-0", ""), "is a pod of another job, `other`"),
    ("PyTorchJob", C10D.format("rendezvous.ml.svc", ""), ""),
    ("PyTorchJob", C10D.format("localhost", ""), "the 2 pods meet at `localhost:29400`"),
]
# Options that launchers refuse.
OPTIONS = [
    ("PyTorchJob", "torchrun --nproc-per-node=8 --nodes=2 train.py", "`--nodes` is not an option of torchrun"),
    ("PyTorchJob", "torchrun --nproc-per-node=8 --log train.py", ""),
    ("PyTorchJob", "torchrun --nproc-per-node=8 `cat /x` --nodes=2 train.py", ""),
    ("PyTorchJob", "torchrun --nproc-per-node=8 -t3 train.py --nodes=2", ""),
    ("PyTorchJob", "accelerate launch --multi_gpu --num_processes 8 --mixed_precision bf17 train.py", "`bf17`"),
    ("PyTorchJob", "accelerate launch --multi_gpu --num_processes 8 --mixed_precision bf16 train.py", ""),
    (
        "PyTorchJob",
        "accelerate launch --multi_gpu --num_gpus 8 train.py",
        "`--num_gpus` is not an option",
    ),
    ("PyTorchJob", "accelerate launch --multi_gpu --num-processes 8 --fp8_margin 1 train.py --num_gpus 8", ""),
]
# A script in a ConfigMap, the fields of its volume, and a part of the message.
SCRIPT_FILES = [
    (["/f/run.sh"], {}, "`/f/run.sh` is a file of a volume with mode `0644`"),
    (["/f/run.sh"], {"defaultMode": 0o755}, ""),
    (["/f/run.sh"], {"items": [{"key": "run.sh", "path": "run.sh", "mode": 0o555}]}, ""),
    (["/f/run.sh"], {"items": [{"key": "run.sh", "path": "run.sh", "mode": 0o400}], "defaultMode": 0o755}, "`0400`"),
    (["sh", "/f/run.sh"], {}, ""),
    (["/other/run.sh"], {}, ""),
]
# The sizes of a model of a RayService with 2 x 8 GPUs.
SERVICES = [
    ("tensor_parallel_size: 8, pipeline_parallel_size: 2", ""),
    ("tensor_parallel_size: 8, pipeline_parallel_size: 4", "needs 32 GPUs, and the Ray cluster has 16"),
    ("tensor_parallel_size: 3", "attention heads (64)"),
    ("tensor_parallel_size: ${TP}", ""),
]
# A GPU, a command on 8 GPUs, and the arithmetic.
MODELS = [
    (H100, "vllm serve meta-llama/Llama-3.1-405B -tp 8", "405.85 billion parameters x 2 bytes / 8 GPUs = 101.5 GB"),
    (H100, "vllm serve meta-llama/Llama-3.1-405B-FP8 -tp 8", ""),
    (H100, "vllm serve meta-llama/Llama-3.1-405B -tp 8 --quantization fp8", ""),
    (H100, "vllm serve meta-llama/Llama-3.1-70B -tp 8", ""),
    ("", "vllm serve meta-llama/Llama-3.1-405B -tp 8", ""),
    ("p5.48xlarge,p5e.48xlarge", "vllm serve meta-llama/Llama-3.1-405B -tp 8", ""),
    (
        "p4d.24xlarge",
        f"torchrun --nproc-per-node=8 {CLM} --model_name_or_path meta-llama/Llama-3.1-8B --do_train",
        "x 6 bytes",
    ),
    (
        "p4d.24xlarge",
        f"torchrun --nproc-per-node=8 {CLM} --model_name_or_path meta-llama/Llama-3.1-8B --do_train --fsdp full_shard",
        "",
    ),
    (
        "p4d.24xlarge",
        f"torchrun --nproc-per-node=8 {CLM} --model_name_or_path meta-llama/Llama-3.1-8B --do_train --optim adafactor",
        "",
    ),
    (
        "p4d.24xlarge",
        "torchrun --nproc-per-node=8 my.py --model_name_or_path meta-llama/Llama-3.1-70B --output_dir /o --do_train",
        "",
    ),
    (
        H100,
        f"torchrun --nproc-per-node=8 {MEGATRON.replace('--use-distributed-optimizer', '')} {STAGES}",
        "x 18 bytes / (1 x 4) = 97.8 GB",
    ),
    (H100, f"torchrun --nproc-per-node=8 {MEGATRON} {STAGES}", ""),
]


def container(command, gpus=8, **fields):
    return {
        "name": "main",
        "image": "registry.example.com/train:1.4.2",
        "command": ["bash", "-c", command],
        "resources": {"limits": {"cpu": "16", "memory": "256Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}},
        "volumeMounts": [{"name": "files", "mountPath": "/f"}],
        **fields,
    }


def pod(command, gpus=8, **fields):
    volumes = [{"name": "files", "configMap": {"name": "files"}}]
    return {"spec": {"containers": [container(command, gpus)], "volumes": volumes, **fields}}


def make(api, kind, spec):
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "job", "namespace": "ml"}, "spec": spec}


def make_job(kind, command, product=""):
    if product.startswith("NVIDIA"):
        selector = {"nodeSelector": {"nvidia.com/gpu.product": product}}
    else:
        types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": product.split(",")}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [types]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        selector = {"affinity": affinity} if product else {}
    if kind == "PyTorchJob":
        template = pod(command)
        template["spec"]["containers"][0]["name"] = "pytorch"
        specs = {role: {"replicas": 1, "template": template} for role in ("Master", "Worker")}
        return make("kubeflow.org/v1", kind, {"pytorchReplicaSpecs": specs})
    if kind == "Job":
        spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
        return make("batch/v1", kind, {**spec, "template": pod(command, restartPolicy="Never")})
    if kind in ("RayJob", "RayService"):
        head = {"rayStartParams": {"num-cpus": "0"}, "template": pod("", 0)}
        worker = {"groupName": "gpu", "replicas": 2, "minReplicas": 2, "maxReplicas": 2, "rayStartParams": {}}
        cluster = {"headGroupSpec": head, "workerGroupSpecs": [{**worker, "template": pod("")}]}
        if kind == "RayJob":
            return make("ray.io/v1", kind, {"entrypoint": command, "rayClusterSpec": cluster})
        return make("ray.io/v1", kind, {"serveConfigV2": command, "rayClusterConfig": cluster})
    if kind == "LeaderWorkerSet":
        return make(
            "leaderworkerset.x-k8s.io/v1", kind, {"leaderWorkerTemplate": {"size": 2, "workerTemplate": pod(command)}}
        )
    template = pod(command, **selector)
    template["metadata"] = {"labels": {"app": "job"}}
    return make("apps/v1", kind, {"selector": {"matchLabels": {"app": "job"}}, "template": template})


def list_cases():
    yield from (
        (
            "torchrun --nproc-per-node=8 " + script,
            make_job("PyTorchJob", "torchrun --nproc-per-node=8 " + script),
            files,
            part,
        )
        for script, files, part in SCRIPTS
    )
    yield from (
        (f"{kind}: {text[-60:]}", make_job(kind, "python /f/train.py"), {"train.py": text}, part)
        for kind, text, part in CALLS
    )
    yield from (
        (f"{kind}: {command}", make_job(kind, command), {}, part)
        for kind, command, part in SERVERS + MEETINGS + OPTIONS
    )
    yield from (
        (f"{product}: {command}", make_job("Deployment", command, product), {}, part)
        for product, command, part in MODELS
    )
    for command, fields, part in SCRIPT_FILES:
        job = make_job("Job", "")
        job["spec"]["template"]["spec"]["containers"][0]["command"] = command
        job["spec"]["template"]["spec"]["volumes"][0]["configMap"].update(fields)
        yield f"{command} {fields}", job, {"run.sh": "#!/bin/sh\ntorchrun --nproc-per-node=8 train.py\n"}, part
    image = make_job("Deployment", "")
    image["spec"]["template"]["spec"]["containers"][0] |= {"image": "vllm/vllm-openai:v0.10.2", "command": []}
    for args, part in ((["--model", "m", "-tp", "8"], ""), (["--model", "m", "-tp", "16"], "World size (16)")):
        job = json.loads(json.dumps(image))
        job["spec"]["template"]["spec"]["containers"][0]["args"] = args
        yield f"vllm-openai: {args}", job, {}, part
    lines = "set -e\npip list\ntorchrun --nnodes=3 \\\n  train.py\n"
    for command, files, part in (
        (lines, {}, "in line 3 of the script, torchrun waits"),
        ("bash /f/run.sh", {"run.sh": lines}, "in line 3 of `/f/run.sh`, torchrun waits"),
    ):
        yield f"lines: {command}", make_job("PyTorchJob", command), files, part
    for sizes, part in SERVICES:
        yield f"RayService: {sizes}", make_job("RayService", SERVE.replace("SIZES", sizes)), {}, part


CASES = list(list_cases())
OTHERS = ("model-too-large", "unreachable-rendezvous")


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Lint all cases at once, and return the findings of each."""
    root = tmp_path_factory.mktemp("cases")
    for number, (_, job, files, _) in enumerate(CASES):
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "files", "namespace": "ml"},
            "data": files,
        }
        (root / str(number)).mkdir()
        (root / str(number) / "job.yaml").write_text(
            "\n---\n".join(json.dumps(each) for each in (config, job)), "utf-8"
        )
    found = {}
    for each in lint(root).findings:
        if each.severity.value != "info" and (each.category == "launch" or each.rule in OTHERS):
            found.setdefault(int(each.location.file.split("/")[0]), []).append(each.message)
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case[0] for case in CASES])
def test_reports_what_the_framework_refuses(number, findings):
    part = CASES[number][3]
    # The templates of two roles have the same fault.
    messages = set(findings.get(number, []))

    assert [part in message for message in messages] == ([True] if part else [])


DESCRIBED = [
    (
        f"{MEGATRON} --tensor-model-parallel-size 4 --global-batch-size 128",
        {
            "pods": "2",
            "GPUs per pod": "8",
            "world size": "16",
            "tensor parallel size": "4",
            "data parallel size": "4",
            "global batch size": "128",
            "memory per GPU": "at least 48.9 GB",
        },
    ),
    (
        f"{TITAN} llama3_8b --parallelism.tensor_parallel_degree 8",
        {"tensor parallel size": "8", "data parallel shards": "2"},
    ),
    (f"{CLM} --gradient_accumulation_steps 2", {"batch size": "128"}),
    ("train.py --lr $LR", {"world size": "16"}),
]


@pytest.mark.parametrize(("script", "numbers"), DESCRIBED, ids=[script for script, _ in DESCRIBED])
def test_describes_the_numbers_of_a_launch(script, numbers, tmp_path):
    kind = next(kind for kind in config.load_own(tmp_path).kinds if kind.name == "PyTorchJob")
    job = make_job("PyTorchJob", f"torchrun --nproc-per-node=8 {script} --token=$HF_TOKEN")
    secret = "hf_" + "abcdefghij" * 3 + "abcd"
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["env"] = [{"name": "HF_TOKEN", "value": secret}]
    [launch] = describe_launches(Manifest(job, kind, Cluster()))

    assert launch.roles == ("Master", "Worker")
    assert numbers.items() <= {row.name: row.value for row in launch.rows}.items()
    assert secret not in launch.command
    assert launch.command.startswith("torchrun --nproc-per-node=8 ")


REPLICAS = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  replicas: 2
  image: registry.example.com/bert:1.4.2
  command: COMMAND
  resources: {cpu: 8, memory: 64Gi, gpu: 8}
  shm: 16Gi
  configs:
    ds:
      data: {ds.json: '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}'}
      mountPath: /f
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  cluster: {platform: PLATFORM}
  patches:
    - merge: {replicas: 3}
"""


@pytest.fixture
def write_job(tmp_path):
    """Write a job of 2 pods, of which an overlay makes 3."""

    def write(command, platform="kubeflow"):
        for name, text in (
            ("jobgen.yaml", "environments: [dev, prod]\n"),
            ("jobs/bert.yaml", REPLICAS.replace("COMMAND", command)),
            ("overlays/prod/overlay.yaml", OVERLAY),
            ("overlays/dev/overlay.yaml", OVERLAY[: OVERLAY.index("  patches")].replace("prod", "dev")),
        ):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("PLATFORM", platform), "utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("command", "platform", "part"),
    [
        ("[torchrun, --nnodes=2, train.py]", "kubeflow", "`2` nodes"),
        ("[torchrun, --nnodes=2, train.py]", "trainer", "`2` nodes"),
        ("[torchrun, train.py, --deepspeed_config, /f/ds.json]", "kubeflow", "64 != 4 * 1 * 24"),
        ("[torchrun, train.py, --deepspeed_config, /f/ds.json]", "jobset", "64 != 4 * 1 * 24"),
    ],
)
def test_names_the_overlay_that_changes_the_number_of_pods(command, platform, part, write_job):
    found = [each for each in lint(write_job(command, platform)).findings if each.category == "launch"]

    assert [part in each.message for each in found] == [True]
    [note] = [each for each in found[0].related if "overrides" in each.message]
    assert (note.location.file, note.location.line) == ("overlays/prod/overlay.yaml", 7)
    assert note.message == "patch of prod overrides `2` of job with `3`"


@pytest.mark.parametrize(
    ("command", "platform", "rows"),
    [
        (
            "[torchrun, --nnodes=2, train.py]",
            "kubeflow",
            {
                "pods": ("3", "patch of prod, replicas", "overlays/prod/overlay.yaml:7:25"),
                "world size": ("16", "2 nodes x 8 processes, but the job has 3 pods", ""),
            },
        ),
        (
            "[torchrun, train.py, --deepspeed_config, /f/ds.json]",
            "jobset",
            {
                "pods": ("3", "patch of prod, replicas", "overlays/prod/overlay.yaml:7:25"),
                "batch size": ("64", "job, 4 x 1 steps x 24 processes = 96, which is not 64", "jobs/bert.yaml:8:53"),
            },
        ),
    ],
)
def test_explains_numbers_that_do_not_fit(command, platform, rows, write_job):
    fields = explain(write_job(command, platform), "bert", "launch", environments=["prod"]).fields
    found = {each.field.rpartition(": ")[2]: each.sources[0] for each in fields}

    assert {name: (str(found[name].value), found[name].layer, str(found[name].location or "")) for name in rows} == rows


@pytest.mark.parametrize(
    ("gpus", "platform", "numbers", "part"),
    [
        ("", "kubeflow", "--cpu --num_machines 2 --num_processes 2 --machine_rank 0", ""),
        ("", "jobset", "--cpu --num_machines 2 --num_processes 2 --machine_rank 0", ""),
        (
            "",
            "trainer",
            "--cpu --num_machines 2 --num_processes 2 --machine_rank 0",
            "start the script with `torchrun`",
        ),
        (", gpu: 1", "kubeflow", "--multi_gpu --num_machines 2 --num_processes 2 --machine_rank 0", ""),
        (", gpu: 8", "kubeflow", "--multi_gpu --num_machines 1 --num_processes 8", ""),
    ],
)
def test_writes_numbers_of_accelerate_that_match_the_pods(gpus, platform, numbers, part, write_job):
    root = write_job("[train.py]\n  accelerate: {}", platform)
    job = root / "jobs" / "bert.yaml"
    job.write_text(job.read_text("utf-8").replace(", gpu: 8", gpus), "utf-8")
    command = str(explain(root, "bert", "launch", environments=["dev"]).fields[0].value)
    found = {each.message for each in lint(root).findings if each.category == "launch"}

    assert command.startswith(f"accelerate launch {numbers} ")
    assert bool(found) == bool(part)
    assert all(part in message for message in found)
