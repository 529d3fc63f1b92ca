"""Pod templates as people write them: containers, resources, variables, volumes, scheduling.

Every function takes a `Job` and draws from its random numbers, so that the same seed gives the same templates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from yaml_styles import Octal

Data = dict[str, Any]
Option = TypeVar("Option")

MODELS = (
    "bert resnet50 llama-7b vit-l16 whisper gpt2 t5-base mnist dlrm yolo-x unet moe-8x7b ctr deepfm wav2vec".split()
)
TASKS = "pretrain finetune eval distill ablation nightly sweep baseline resume smoke ddp lora".split()
TEAMS = "nlp vision speech ads research search robotics recsys".split()
REGISTRIES = ("registry.example.com", "ghcr.io/acme", "registry.internal:5000", "quay.io/acme-ml", "docker.io/acme")
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
SCRIPTS = (
    "set -euo pipefail\nmkdir -p /tmp/work\npython train.py --config /etc/train/config.yaml\n",
    "set -e\nulimit -n 65536\nfor shard in 0 1 2 3; do\n  python prepare.py --shard $shard\ndone\nexec python train.py",
    "#!/bin/bash\n# warm the page cache first\ncat /data/index/* > /dev/null\n\npython -m trainer.main\n",
    "trap 'touch /tmp/done' EXIT\nexport OMP_NUM_THREADS=$(nproc)\npython train.py 2>&1 | tee /tmp/train.log\n\n",
)
LONG = (
    "python -m acme.train --model {model} --dataset s3://datasets/{model}/v3 --precision bf16 --checkpoint-every 500 "
    "--log-level info --gradient-accumulation 8"
)


class Job(NamedTuple):
    """What all parts of one job agree on."""

    random: Random
    name: str
    model: str
    team: str
    image: str
    gpus: int
    gpu_resource: str

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choose(self, options: Sequence[Option]) -> Option:
        return self.random.choice(options)

    def some(self, options: dict[str, Any], share: float) -> Data:
        """Return some of the entries; functions are called for their value."""
        keys = [key for key in options if self.chance(share)]
        return {key: options[key]() if callable(options[key]) else options[key] for key in keys}


def new_job(random: Random, number: int) -> Job:
    model, team = random.choice(MODELS), random.choice(TEAMS)
    name = f"{model}-{random.choice(TASKS)}-{base36(number)}"
    gpus = random.choice((0, 0, 1, 1, 2, 4, 8))
    gpu_resource = random.choice(("nvidia.com/gpu",) * 6 + ("amd.com/gpu",))
    return Job(random, name, model, team, image(random, model, team, gpus), gpus, gpu_resource)


def base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = LETTERS[digit] + digits
    return digits.rjust(3, "0")


def image(random: Random, model: str, team: str, gpus: int) -> str:
    repository = f"{random.choice(REGISTRIES)}/{team}/{model}"
    version = f"{random.randint(0, 9)}.{random.randint(0, 30)}"
    digest = hashlib.sha256(repr((repository, version, random.random())).encode()).hexdigest()
    tags = [f"v{version}", f"{version}.{random.randint(0, 20)}", f"2026{random.randint(1, 12):02}15-{digest[:7]}"]
    tags += [f"{version}-cuda12.4"] if gpus else []
    return f"{repository}@sha256:{digest}" if random.random() < 0.1 else f"{repository}:{random.choice(tags)}"


# Containers


def resources(job: Job, gpus: int) -> Data:
    """Return resources in one of the forms that people write: both, limits alone, requests alone, or nothing."""
    memory, cpu = job.choose((4, 8, 16, 32, 64, 120)), job.choose((1, 2, 4, 8, 16))
    amounts: Data = {
        "cpu": job.choose((cpu, str(cpu), f"{cpu * 500}m")),
        "memory": job.choose((f"{memory}Gi", f"{memory * 1024}Mi", f"{memory}G")),
    }
    if job.chance(0.1):
        amounts["ephemeral-storage"] = f"{job.choose((10, 50, 200))}Gi"
    devices: Data = {job.gpu_resource: job.choose((gpus, str(gpus)))} if gpus else {}
    if devices and job.chance(0.08):
        devices["rdma/hca"] = 1
    form = job.choose(("both", "limits", "lower", "both"))
    if form == "limits":
        return {"limits": {**amounts, **devices}}
    if form == "lower":
        return {"requests": {"cpu": "500m", "memory": "2Gi", **devices}, "limits": {**amounts, **devices}}
    return {"requests": {**amounts, **devices}, "limits": {**amounts, **devices}}


def environment(job: Job) -> list[Data]:
    """Return a list of variables: values, references to objects, fields of the pod."""
    secret, config = f"{job.team}-credentials", f"{job.model}-config"
    plain = [
        {"name": "NCCL_DEBUG", "value": job.choose(("INFO", "WARN"))},
        {"name": "OMP_NUM_THREADS", "value": str(job.choose((1, 4, 8)))},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "EXPERIMENT", "value": job.name},
        {"name": "USE_AMP", "value": job.choose(("true", "yes", "on"))},
        {"name": "LEARNING_RATE", "value": job.choose(("1e-4", "3e-05", "0.001"))},
        {"name": "DATA_ROOT", "value": f"/mnt/{job.team}/{job.model}"},
        {"name": "NOTE", "value": job.choose(("run 3 of 5", "50%", "", "run: 3", "a # b", "it's fine"))},
    ]
    references = [
        {"name": "AWS_ACCESS_KEY_ID", "valueFrom": {"secretKeyRef": {"name": secret, "key": "access-key"}}},
        {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": "wandb", "optional": True}}},
        {"name": "BATCH_SIZE", "valueFrom": {"configMapKeyRef": {"name": config, "key": "batch.size"}}},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "NODE_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}}},
        {"name": "CPU_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    chosen = job.random.sample(plain, job.choose((0, 0, 1, 2, 3, 5))) + job.random.sample(
        references, job.choose((0, 0, 0, 1, 2))
    )
    if chosen and job.chance(0.15):
        chosen.append({"name": "RUN_DIR", "value": f"/runs/$({chosen[0]['name']})"})
    return chosen


def sources(job: Job) -> list[Data]:
    """Return what `envFrom` takes whole."""
    secret: Data = {"secretRef": {"name": f"{job.team}-env"}}
    config: Data = {"configMapRef": {"name": f"{job.model}-env", "optional": job.chance(0.5)}}
    return job.choose(([config], [secret], [config, secret], [{**config, "prefix": "CFG_"}]))


def command(job: Job) -> Data:
    """Return the command of a container: a list, arguments alone, or a shell with a script."""
    options = [
        f"--epochs={job.random.randint(1, 90)}",
        f"--model={job.model}",
        "--fp16",
        f"--seed={job.random.randint(0, 9999)}",
    ]
    options = job.random.sample(options, job.random.randint(0, len(options)))
    spaced = [part for option in options for part in option.split("=")]
    return job.choose(
        (
            {"command": ["python", "train.py", *options]},
            {"command": ["python", "-m", f"{job.team}.train"], "args": spaced},
            {"args": options or ["train"]},
            {"command": ["/bin/bash", "-c"], "args": [job.random.choices(SCRIPTS, (6, 3, 3, 1))[0]]},
            {"command": ["sh", "-c", LONG.format(model=job.model)]},
            {},
            {},
        )
    )


def probes(job: Job) -> Data:
    """Return settings that few containers have."""
    check: Data = job.choose(
        (
            {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}},
            {"exec": {"command": ["test", "-f", "/tmp/alive"]}},
            {"tcpSocket": {"port": 8080}},
        )
    )
    return job.some(
        {
            "livenessProbe": {**check, "initialDelaySeconds": 60, "periodSeconds": 30},
            "startupProbe": {**check, "failureThreshold": 40},
            "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 10"]}}},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "workingDir": f"/workspace/{job.model}",
            "imagePullPolicy": "IfNotPresent",
            "securityContext": lambda: job.choose(
                (
                    {"allowPrivilegeEscalation": False},
                    {"runAsUser": 1000, "runAsNonRoot": True},
                    {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": False},
                )
            ),
            "stdin": False,
        },
        0.06,
    )


def volumes(job: Job, *, memory: bool) -> tuple[list[Data], list[Data]]:
    """Return volumes and the mounts of the main container."""
    name = f"{job.team}-data"
    kinds: list[tuple[Data, Data]] = [
        ({"persistentVolumeClaim": {"claimName": name}}, {"mountPath": "/data", "readOnly": True}),
        ({"persistentVolumeClaim": {"claimName": f"{job.model}-ckpt"}}, {"mountPath": f"/ckpt/{job.name}"}),
        ({"emptyDir": {}}, {"mountPath": "/scratch"}),
        ({"emptyDir": {"sizeLimit": "20Gi"}}, {"mountPath": "/tmp/cache"}),
        ({"configMap": {"name": f"{job.model}-config"}}, {"mountPath": "/etc/train"}),
        (
            {"configMap": {"name": "hosts", "items": [{"key": "hosts.txt", "path": "hosts"}]}},
            {"mountPath": "/etc/hosts.d/hosts", "subPath": "hosts"},
        ),
        ({"secret": {"secretName": f"{job.team}-ssh", "defaultMode": Octal(0o400)}}, {"mountPath": "/root/.keys"}),
        ({"nfs": {"server": "nfs.example.com", "path": "/exports/models"}}, {"mountPath": "/models", "readOnly": True}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}},
            {"mountPath": "/var/run/identity"},
        ),
        (
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"mountPath": "/etc/podinfo"},
        ),
        (
            {"csi": {"driver": "s3.csi.example.com", "volumeAttributes": {"bucket": job.team, "prefix": job.model}}},
            {"mountPath": "/s3"},
        ),
    ]
    chosen = job.random.sample(kinds, job.choose((0, 0, 0, 1, 1, 2, 3)))
    if memory or job.chance(0.2):
        chosen.append(({"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"mountPath": "/dev/shm"}))
    names = [f"{next(iter(source)).lower()}-{number}" for number, (source, _) in enumerate(chosen)]
    listed = [{"name": name, **source} for name, (source, _) in zip(names, chosen, strict=True)]
    return listed, [{"name": name, **mount} for name, (_, mount) in zip(names, chosen, strict=True)]


def main_container(job: Job, name: str, gpus: int, port: int, mounts: list[Data]) -> Data:
    made: Data = {"name": name, "image": job.image, **command(job)}
    if port and job.chance(0.12):
        made["ports"] = [{"name": job.choose(("metrics", "debug")), "containerPort": 8080}]
    if env := environment(job):
        made["env"] = env
    if job.chance(0.15):
        made["envFrom"] = sources(job)
    if gpus or job.chance(0.8):
        made["resources"] = resources(job, gpus)
    if mounts:
        made["volumeMounts"] = mounts
    return {**made, **probes(job)}


def side_containers(job: Job) -> list[Data]:
    """Return containers beside the main one: most pods have none."""
    made: list[Data] = [
        {
            "name": "log-shipper",
            "image": "registry.example.com/infra/fluent-bit:3.1.4",
            "args": ["-c", "/fluent-bit/etc/fluent-bit.conf"],
            "resources": {"limits": {"cpu": "200m", "memory": "256Mi"}},
        },
        {
            "name": "metrics",
            "image": "registry.example.com/infra/node-exporter:v1.8.2",
            "ports": [{"name": "http-metrics", "containerPort": 9100, "protocol": "TCP"}],
        },
        {
            "name": "sync",
            "image": "registry.example.com/infra/rclone:1.67",
            "command": ["rclone", "sync", "/out", "remote:runs"],
            "env": [{"name": "RCLONE_TRANSFERS", "value": "16"}],
        },
    ]
    return job.random.sample(made, job.choose((0,) * 12 + (1, 1, 2, 3)))


def init_containers(job: Job, mounts: list[Data]) -> list[Data]:
    first: Data = {
        "name": "fetch",
        "image": "registry.example.com/infra/aws-cli:2.17.9",
        "command": ["aws", "s3", "sync"],
    }
    first["args"] = [f"s3://datasets/{job.model}", "/tmp/data"]
    second = {
        "name": "permissions",
        "image": "registry.example.com/infra/busybox:1.36",
        "command": ["chmod", "-R", "g+w", "/tmp"],
    }
    chosen = job.choose(([first], [second], [first, second]))
    if mounts and job.chance(0.5):
        chosen[0]["volumeMounts"] = mounts[:1]
    return chosen


# Pods


def node_affinity(job: Job) -> Data:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-west-1a", "eu-west-1b"]}
    model = {"key": "gpu.example.com/model", "operator": job.choose(("In", "NotIn")), "values": ["a100", "h100"]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [zone, model]}]}
    }


def pod_affinity(job: Job) -> Data:
    term = {"labelSelector": {"matchLabels": {"job": job.name}}, "topologyKey": "kubernetes.io/hostname"}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def scheduling(job: Job) -> Data:
    """Return what all pods of a job have in common."""
    return job.some(
        {
            "nodeSelector": lambda: job.choose(
                ({"pool": "gpu"}, {"kubernetes.io/arch": "amd64", "pool": job.team}, {"node.example.com/disk": "nvme"})
            ),
            "tolerations": lambda: job.choose(
                (
                    [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                    [{"key": "dedicated", "operator": "Equal", "value": job.team, "effect": "NoSchedule"}],
                    [{"key": "spot", "operator": "Exists"}, {"key": "maintenance", "operator": "Exists"}],
                )
            ),
            "affinity": lambda: job.choose(
                ({"nodeAffinity": node_affinity(job)}, {"podAntiAffinity": pod_affinity(job)})
            ),
            "serviceAccountName": f"{job.team}-trainer",
            "imagePullSecrets": [{"name": "registry"}, {"name": f"{job.team}-registry"}],
            "priorityClassName": job.choose(("high", "batch-low")),
            "securityContext": lambda: job.choose(
                (
                    {"fsGroup": 2000},
                    {"runAsUser": 1000, "runAsGroup": 3000},
                    {"seccompProfile": {"type": "RuntimeDefault"}},
                )
            ),
            "terminationGracePeriodSeconds": job.choose((30, 120, 600)),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "topologySpreadConstraints": lambda: [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"job": job.name}},
                }
            ],
            "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
            "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["cache.example.com"]}],
        },
        job.choose((0.05, 0.15, 0.35)),
    )


def template(
    job: Job, container: str, gpus: int, port: int, shared: Data, *, memory: bool = False, is_queued: bool = False
) -> Data:
    """Return the pod template of one role."""
    listed, mounts = volumes(job, memory=memory)
    main = main_container(job, container or job.name, gpus, port, mounts)
    if is_queued and "resources" not in main:
        main["resources"] = resources(job, gpus)
    containers = [main, *side_containers(job)]
    if len(containers) > 1 and job.chance(0.3):
        containers.reverse()
    spec: Data = {**shared, "containers": containers}
    if job.chance(0.12):
        spec["initContainers"] = init_containers(job, mounts)
    if listed:
        spec["volumes"] = listed
    made: Data = {"spec": spec}
    if job.chance(0.25):
        labels = {"job": job.name, "team": job.team}
        annotations = job.some({"sidecar.istio.io/inject": "false", "example.com/cost-center": "4711"}, 0.5)
        made = {"metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})}, **made}
    return made
