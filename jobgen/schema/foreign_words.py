"""Words of other tools for fields and values of jobgen's formats, and what to write for them.

Slurm, Docker Compose, Argo Workflows, Ray, Helm, kustomize and the operators themselves have the same things under
other names, and some of them in other units.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from jobgen.k8s.devices import is_device
from jobgen.model.data import untraced
from jobgen.model.duration import read_seconds
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.yamlio.write import to_inline_yaml

JOB, ROLE, OVERLAY, PATCH, MATCH, CONTAINER = "a job", "a role", "an overlay", "a patch", "a match", "a container"
"""Titles of the mappings of jobgen's formats, as their schemas name them."""

_MAX_FORM = 100
_REMOVE = "remove "
_MAIN_CONTAINER = "`image`, `command`, `args` and other fields of the main container"
_ROLES = "`roles.<role>`"
_PODS = "`replicas`, the number of all pods; or `replicas` of each role"
_RETRIES = "`runPolicy.backoffLimit`"
_DEADLINE = "`runPolicy.activeDeadlineSeconds`"
_VOLUMES = "`volumes` by name, with `pvc`, `emptyDir` or another source and `mountPath`"
_LOGS = "remove it: Kubernetes keeps what the program prints"
_ORDER = "remove it: jobs do not wait for each other"
_NETWORK = "remove it: pods reach each other by name"
_NODES = "`nodeSelector` with a label of these nodes"
_MATRIX = "`matrix`, which makes a job for each combination"
_JOB_WORDS = {
    **dict.fromkeys(
        """count instances nnodes nodes numNodes numWorkers numPods numReplicas parallelism replicaCount scale
        workerCount worldSize""".split(),
        _PODS,
    ),
    "containers": f"{_MAIN_CONTAINER}, or `podTemplate.spec.containers` for others",
    "container": _MAIN_CONTAINER,
    **dict.fromkeys(("extraContainers", "sidecarContainers"), "`sidecars`"),
    # The program.
    **dict.fromkeys(("cmd", "entrypoint", "entryPoint", "program", "script"), "`command`"),
    **dict.fromkeys(("argument", "arguments"), "`args`"),
    **dict.fromkeys(("build", "containerImage", "dockerImage"), "`image`"),
    **dict.fromkeys(("imageTag", "tag"), "it behind the colon of `image`"),
    "pullPolicy": "`imagePullPolicy`",
    **dict.fromkeys(("pullSecret", "pullSecrets", "imagePullSecret"), "`imagePullSecrets`"),
    **dict.fromkeys(("chdir", "cwd", "workdir", "workDir"), "`workingDir`"),
    **dict.fromkeys(("envFile", "envFiles", "extraEnvFrom"), "`envFrom`, or `env: true` of an entry of `configs`"),
    **dict.fromkeys(
        "environment environments environmentVariables envs envVar envVars export extraEnv extraEnvVars".split(),
        "`env`",
    ),
    # Amounts.
    **dict.fromkeys(
        "cores cpu cpuCount cpuLimit cpus cpusPerTask cpusPerWorker ncpus numCpu numCpus".split(), "`resources.cpu`"
    ),
    **dict.fromkeys(
        "mem memGb memLimit memory memoryLimit memoryMb memPerCpu memPerNode memReservation ram".split(),
        "`resources.memory`",
    ),
    **dict.fromkeys(
        """accelerator accelerators devices gpus gpuCount gpuLimit gpusPerNode gpusPerReplica gpusPerTask gpusPerWorker
        gres ngpus numGpu numGpus""".split(),
        "`resources.gpu`",
    ),
    **dict.fromkeys(("limits", "requests", "limit", "request"), "it below `resources`"),
    **dict.fromkeys("dshm sharedMemory sharedMemorySize shmSize".split(), "`shm`"),
    "nprocPerNode": "`resources.gpu`, or `pytorch.nprocPerNode` for another number of processes",
    "ntasks": f"{_PODS}; each pod starts one process for each GPU",
    # How it runs.
    **dict.fromkeys(
        """activeDeadlineSeconds deadline maxRunSeconds maxRuntime maxRunTime maxTime timeLimit timelimit time timeout
        timeoutMin timeoutMinutes timeoutSeconds walltime wallTime""".split(),
        _DEADLINE,
    ),
    **dict.fromkeys(
        """backoff maxAttempts maxRestarts maxRetries maxRetry requeue restartLimit restarts retries retry retryCount
        retryStrategy""".split(),
        _RETRIES,
    ),
    **dict.fromkeys(("ttl", "ttlSeconds", "ttlStrategy"), "`runPolicy.ttlSecondsAfterFinished`"),
    **dict.fromkeys(("restart",), "`restartPolicy`"),
    "podGC": "`runPolicy.cleanPodPolicy`",
    **dict.fromkeys(("paused", "hold"), "`suspend`"),
    **dict.fromkeys(("localQueue", "partition", "queueName"), "`queue`"),
    **dict.fromkeys(("priorityClass", "priorityClassName", "qos"), "`priority`"),
    **dict.fromkeys(
        "constraint constraints instanceType machineType nodelist nodeList nodePool nodeType".split(), _NODES
    ),
    **dict.fromkeys(("schedule", "cron", "cronSchedule"), "a CronJob that creates the job; a job runs once"),
    # Names.
    "metadata": "`metadata` beside `spec`",
    "name": "`metadata.name`",
    **dict.fromkeys(("fullnameOverride", "jobName", "nameOverride"), "`metadata.name`"),
    "namespace": "`metadata.namespace`",
    **dict.fromkeys(("owner", "project", "team"), "a label in `metadata.labels`"),
    "podAnnotations": "`annotations`",
    "podLabels": "`labels`",
    **dict.fromkeys(("account", "comment"), "a label in `metadata.labels`"),
    "serviceAccountName": "`serviceAccount`",
    # Files.
    **dict.fromkeys(("configMap", "configMaps", "fileMounts"), "`configs`, or `configMap` of a volume"),
    **dict.fromkeys(
        """claims extraVolumeMounts extraVolumes mount mounts persistence persistentVolumeClaim
        persistentVolumeClaims pvc pvcs storage tmpfs volumeClaimTemplates volumeClaimTemplate""".split(),
        _VOLUMES,
    ),
    "volumeMounts": "`volumes.<name>.mountPath`",
    # Roles and pods.
    "replicaSpecs": _ROLES,
    **dict.fromkeys(
        "jobTemplate replicatedJobs tasks templates workerGroups workerGroupSpecs replicaTypes".split(), _ROLES
    ),
    "headGroupSpec": "`roles.head`",
    "workers": "`roles.worker.replicas`",
    **dict.fromkeys(("minReplicas", "minWorkers"), "`minReplicas` of a role, below `roles`"),
    **dict.fromkeys(("maxReplicas", "maxWorkers"), "`maxReplicas` of a role, below `roles`"),
    "spec": "`podTemplate.spec`, or `manifest.spec` for the custom resource",
    "template": "`podTemplate`",
    "podSpecPatch": "`podTemplate.spec`",
    **dict.fromkeys(("podTemplateOverrides", "runtimePatches"), "`podTemplate`"),
    "runtimeRef": "`pytorch.runtime`, or the runtime of another framework",
    **dict.fromkeys(("capAdd", "privileged", "runAsUser", "user"), "`securityContext`"),
    **dict.fromkeys(("ipc", "ipcMode"), "`shm` for shared memory, or `podTemplate.spec.hostIPC`"),
    "networkMode": "`podTemplate.spec.hostNetwork`",
    "stopGracePeriod": "`podTemplate.spec.terminationGracePeriodSeconds`",
    "deploy": "`replicas` and `resources`",
    # Ray.
    "rayVersion": "`ray.version`",
    **dict.fromkeys(("runtimeEnvYAML", "runtimeEnv"), "`ray.runtimeEnv`"),
    "rayStartParams": "`ray.startParams`",
    # Several jobs.
    "values": "`defaults` and `patches` of an overlay",
    **dict.fromkeys(
        "array grid hyperparameters parameters params sweep withItems withParam withSequence".split(), _MATRIX
    ),
    # What has no counterpart.
    **dict.fromkeys(("error", "logging", "output"), _LOGS),
    **dict.fromkeys(("dag", "dependency", "dependencies", "dependsOn", "steps", "onExit"), _ORDER),
    **dict.fromkeys(("hostname", "links", "networks"), _NETWORK),
    **dict.fromkeys(("mailType", "mailUser"), "remove it: Kubernetes sends no mail"),
    **dict.fromkeys(("exclusive", "ulimits"), "remove it: `resources` says what a pod gets"),
}
_PROCESSES = {
    "pytorch": "`pytorch.nprocPerNode`",
    "mpi": "`mpi.slotsPerWorker`",
    "deepspeed": "`deepspeed.slotsPerWorker`",
    "colossalai": "`colossalai.procPerWorker`",
}
"""How many processes a pod starts, by framework."""
_PROCESS_WORDS = frozenset(
    "nproc ntasksPerNode numProcesses numProcPerNode procsPerNode processesPerNode tasksPerNode".split()
)
_ROLE_NAMES = frozenset(
    ("chief", "evaluator", "head", "launcher", "master", "node", "ps", "scheduler", "server", "worker")
)
_OVERLAY_WORDS = {
    **dict.fromkeys(("base", "bases", "components", "inherit", "inherits", "parent"), "`extends` for overlays"),
    "commonAnnotations": "`defaults.annotations`",
    "commonLabels": "`defaults.labels`",
    "configMapGenerator": "`configs` with `data` in a job or in `defaults`",
    "environment": "the name of the folder: overlays/<environment>/",
    "image": "`defaults.image`, or `merge.image` in `patches`",
    **{key: f"`patches: [{{match: …, {key}: …}}]`" for key in ("jsonPatch", "manifest", "merge")},
    "match": "it in an entry of `patches`, beside what it changes",
    "namePrefix": "`namespace`, which separates environments",
    "nameSuffix": "`namespace`, which separates environments",
    "patchesJson6902": "`jsonPatch` in `patches`",
    "patchesStrategicMerge": "`merge` or `manifest` in `patches`",
    **dict.fromkeys(("patch", "overrides"), "`patches`"),
    "replacements": "`merge` in `patches`",
    "secretGenerator": "a Secret that the cluster has, by name",
    "transformers": "`patches`",
    "valueFiles": "`defaults` and `patches`",
    "values": "`defaults` and `patches`",
    "valuesObject": "`defaults` and `patches`",
    "vars": "`merge` in `patches`",
    **dict.fromkeys(("generators", "generatorOptions", "configurations", "helmCharts", "openapi"), "remove it"),
}
_PATCH_WORDS = {
    "patch": "`merge`, `manifest` or `jsonPatch`",
    "path": "the patch itself: `merge`, `manifest` or `jsonPatch`",
    **dict.fromkeys(("selector", "target", "when", "where"), "`match`"),
    **dict.fromkeys(("ops", "operations", "json", "json6902"), "`jsonPatch`"),
    **dict.fromkeys(("set", "spec", "values"), "`merge`"),
    **dict.fromkeys(
        "exclude frameworks kinds labels name names namespaces paths platforms teams".split(), "it below `match`"
    ),
}
_MATCH_WORDS = {
    **dict.fromkeys(
        ("env", "environment", "environments"), "remove it: a patch applies to the environments of its overlay"
    ),
    **dict.fromkeys(("selector", "labelSelector", "matchLabels"), "`labels`"),
    **dict.fromkeys(("file", "files", "folder", "folders", "path"), "`paths`"),
}
_VOLUME_WORDS = {
    **dict.fromkeys(("claim", "claimName"), "`pvc`"),
    **dict.fromkeys(("containerPath", "mount", "path", "target"), "`mountPath`"),
    "configMapName": "`configMap`",
    "secretName": "`secret`",
    "medium": "`emptyDir: {medium: Memory}`",
    **dict.fromkeys(("size", "sizeLimit"), "`emptyDir.sizeLimit`, or the size of the claim in the claim itself"),
    "server": "`nfs.server`",
    "driver": "`csi.driver`",
    **dict.fromkeys(("defaultMode", "items"), "it below `configMap` or `secret`, beside their name"),
    "storageClassName": "it in the claim itself, which `pvc` names",
    "name": "the name before the colon, as the key of the volume",
}
_FOREIGN_WORDS: Mapping[str, Mapping[str, str]] = {
    "a volume": _VOLUME_WORDS,
    "a config": {
        **dict.fromkeys(("content", "contents", "file", "files", "literals"), "`data`"),
        **dict.fromkeys(("mount", "path", "target"), "`mountPath`"),
        **dict.fromkeys(("configMap", "configMapName", "name"), "the name of the ConfigMap as the key below `configs`"),
        **dict.fromkeys(("key", "keys"), "`env: {VARIABLE: key}`, or `items` for files"),
    },
    "a secret": {
        **dict.fromkeys(("mount", "path", "target"), "`mountPath`"),
        **dict.fromkeys(("secret", "secretName", "name"), "the name of the Secret as the key below `secrets`"),
        **dict.fromkeys(("key", "keys"), "`env: {VARIABLE: key}`, or `items` for files"),
        **dict.fromkeys(("secretKeyRef", "valueFrom"), "it below `env`, as the value of the variable"),
        **dict.fromkeys(("data", "stringData"), "it in the Secret itself: no secret belongs in a repository"),
    },
    "an overlay's metadata": {
        "annotations": "`spec.defaults.annotations`",
        "labels": "`spec.defaults.labels`",
        "namespace": "`namespace` below `spec`",
    },
    "an entry of `images`": {
        **dict.fromkeys(("tag", "version"), "`newTag`"),
        **dict.fromkeys(("image", "repository"), "`name`"),
    },
    "a team": {
        **dict.fromkeys(("dirs", "directories", "folder", "path", "paths"), "`folders`"),
        **dict.fromkeys(("namespace",), "`namespaces`"),
        **dict.fromkeys(("limits", "quota", "quotas", "resources"), "`budget`"),
    },
    "an exception": dict.fromkeys(("date", "end", "expiry", "until"), "`expires`"),
    "jobgen's settings": {"envs": "`environments`", "env": "`environments`", "severities": "`rules`"},
    JOB: _JOB_WORDS,
    "runPolicy": {
        key: word.replace("runPolicy.", "") for key, word in _JOB_WORDS.items() if word.startswith("`runPolicy.")
    },
    ROLE: {key: "`replicas`" if word is _PODS else word for key, word in _JOB_WORDS.items()},
    OVERLAY: _OVERLAY_WORDS,
    MATCH: _MATCH_WORDS,
    PATCH: _PATCH_WORDS,
}

_ONE_FIELD = lazy_pattern(r"`[A-Za-z]+`\Z")
_ONE_PATH = lazy_pattern(r"`(?:([A-Za-z]+)\.)?([A-Za-z]+)`\Z")
_OTHER_VALUES: Mapping[str, Mapping[str, str]] = {
    "framework": {
        "accelerate": "pytorch",
        "colossal": "colossalai",
        "custom": "generic",
        "flax": "jax",
        "horovod": "mpi",
        "lightning": "pytorch",
        "none": "generic",
        "openmpi": "mpi",
        "other": "generic",
        "paddlepaddle": "paddle",
        "tf": "tensorflow",
        "torch": "pytorch",
        "torchrun": "pytorch",
        "xgb": "xgboost",
    },
    "platform": {
        "batch": "kubernetes",
        "k8s": "kubernetes",
        "kubeflow-trainer": "trainer",
        "kubeflow-trainer-v2": "trainer",
        "kubeflow-training-operator": "kubeflow",
        "kubeflow-v1": "kubeflow",
        "kubeflow-v2": "trainer",
        "kuberay": "ray",
        "kuberay-operator": "ray",
        "mpi": "mpi-operator",
        "t9k": "tensorstack",
        "trainer-v2": "trainer",
        "training-operator": "kubeflow",
        "vcjob": "volcano",
    },
}
"""Other words for values of fields: names of operators, libraries and launchers."""

_LAYER_WORDS = {
    "metadata": "`manifest: {metadata: …}` in `patches`",
    "name": "the name of the job in `match.names`",
    "namespace": "`namespace` of the overlay, or `manifest: {metadata: {namespace: …}}` in `patches`",
}
"""Words for `defaults` and `merge`, which have the fields of a job but not its metadata."""


def find_foreign_word(
    title: str, key: str, value: Any, name: str = "", framework: str = ""
) -> tuple[str, Literal["", "other form"]]:
    """Return what to do about a word of another tool, and if that is to write something else; empty if it is none.

    `name` is that of the mapping.
    """
    if title == OVERLAY and key == "resources" and isinstance(value, list):
        return "remove it: all files under jobs/ are read", ""
    if title == JOB and key in _ROLE_NAMES and (name not in ("defaults", "merge") or key not in _LAYER_WORDS):
        return "it is a role, so write it below `roles`", ""
    words = _FOREIGN_WORDS.get(title, {})
    word = words.get(key, "") or words.get(to_camel_case(key), "")
    form = _find_form(title, key, value, name, framework, word)
    return (form, "other form") if form else (word if word.startswith(_REMOVE) else "", "")


def _find_form(title: str, key: str, value: Any, name: str, framework: str, word: str) -> str:
    """Return what to write instead of a word of another tool; an empty string if it is none."""
    if title == JOB and name in ("defaults", "merge") and key in _LAYER_WORDS:
        return f"write {_LAYER_WORDS[key]}"
    if title == MATCH and key in ("job", "jobs", "name"):
        names = untraced(value)
        shown = f"names: {to_inline_yaml(names if isinstance(names, list) else [names])}"
        return f"write `{shown}`" if len(shown) <= _MAX_FORM and "`" not in shown else "write `names`"
    if title == CONTAINER and key in ("mount", "volumes"):
        return _write_mounts(untraced(value))
    if title in ("a secret", "a config") and key.isupper():
        return f"write `env: {{{key}: …}}`, with the name of a key"
    if title == ROLE and key in _ROLE_NAMES:
        return "it is a role of its own; write it one level to the left"
    own = to_camel_case(key)
    if title in (JOB, ROLE) and own in _PROCESS_WORDS:
        word = _PROCESSES.get(framework, "") or "`resources.gpu`; a pod starts a process for each"
    if title in (JOB, ROLE) and is_device(key):
        word = "it below `resources`"
    if not word or word.startswith(_REMOVE):
        return ""
    return f"write {show_with_value(word, own, untraced(value))}"


def _write_mounts(value: Any) -> str:
    """Return what to write for volumes in a container of a job: they are in the job, and here are their paths."""
    pairs = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list):
        pairs = [(each.get("name"), each) for each in value if isinstance(each, dict)]
    paths = {name: each.get("mountPath") if isinstance(each, dict) else each for name, each in pairs}
    shown = f"mounts: {to_inline_yaml(paths)}"
    is_plain = bool(paths) and all(isinstance(each, str) for pair in paths.items() for each in pair)
    return f"write `{shown}`" if is_plain and len(shown) <= _MAX_FORM and "`" not in shown else "write `mounts`"


_LABEL = lazy_pattern(r"([\w./-]{1,80})==?([\w.-]{1,63})\Z")


def report_kustomize_patch(patch: Mapping[str, Any], place: At) -> Problem:
    """Report a patch in the form of kustomize, once, with the form that it has here."""
    target = untraced(patch["target"])
    target = target if isinstance(target, dict) else {}
    match: dict[str, Any] = {
        name: [target[field]]
        for field, name in (("kind", "kinds"), ("name", "names"), ("namespace", "namespaces"))
        if isinstance(target.get(field), str)
    }
    labels = [_LABEL.match(each.strip()) for each in str(target.get("labelSelector", "")).split(",")]
    if all(labels):
        match["labels"] = {found[1]: found[2] for found in labels if found}
    shown = f"match: {to_inline_yaml(match)}"
    is_shown = bool(match) and len(shown) <= _MAX_FORM and "`" not in shown
    text = untraced(patch["patch"])
    is_list = isinstance(text, list) or (isinstance(text, str) and text.lstrip().startswith(("- ", "[")))
    form = "`jsonPatch` with the list of operations" if is_list else "`manifest` with the fields of the object"
    message = Sentence(
        "`target` and `patch` are fields of kustomize; write `{}` and {}", shown if is_shown else "match", form
    )
    message += ", as YAML and not as text" * isinstance(text, str)
    return Problem("unknown-field", message, place, cause="other form")


def show_with_value(word: str, key: str, value: Any) -> str:
    """Return the word for a field; with the value in the unit of the field if the other tool has another one."""
    path = _ONE_PATH.match(word)
    convert = _CONVERSIONS.get(word) if path else None
    meant = convert(key, value) if convert else None
    if path is None or meant is None or meant == value:
        return word
    return f"`{path[2]}: {meant}`{f' below `{path[1]}`' if path[1] else ''}"


_SIZE = lazy_pattern(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([kmgt])i?b?\Z", re.IGNORECASE)
_DEVICE_COUNT = lazy_pattern(r"(?:gpu:)?(?:[A-Za-z][\w.-]{0,30}:)?([0-9]{1,3})\Z")


def to_size(_: str, value: Any) -> str | None:
    """Return an amount of memory as Kubernetes writes it: `64gb` of Docker and `64G` of Slurm are both `64Gi`."""
    size = _SIZE.match(value) if isinstance(value, str) else None
    unit = size[2].upper() if size else ""
    return f"{size[1]}{unit}i" if size else None


def _to_seconds(key: str, value: Any) -> int | None:
    """Return a time limit in seconds: `24h`, or `1-12:00:00` and `90:00` of Slurm; a number in a known unit only."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 60 if key in ("timeoutMin", "timeoutMinutes") else value if key.endswith("Seconds") else None
    return read_seconds(value) if isinstance(value, str) else None


def _to_devices(_: str, value: Any) -> int | None:
    """Return the number of devices in `gpu:8`, `gpu:a100:8` or `A100:8`."""
    found = _DEVICE_COUNT.match(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


_RESTARTS = {"no": "Never", "False": "Never", "never": "Never"}
"""The values of `restart` in Docker Compose after which a job does not restart; YAML reads `no` as false."""


def _to_restart_policy(_: str, value: Any) -> str | None:
    """Return the policy for `restart` of Docker Compose, whose `always` would also start what has succeeded again."""
    return _RESTARTS.get(str(value), "OnFailure") if isinstance(value, (str, bool)) else None


def _keep(_: str, value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


_CONVERSIONS: Mapping[str, Callable[[str, Any], Any]] = {
    "`shm`": to_size,
    "`resources.memory`": to_size,
    "`resources.gpu`": _to_devices,
    **dict.fromkeys((_DEADLINE, "`activeDeadlineSeconds`"), _to_seconds),
    "`restartPolicy`": _to_restart_policy,
    **dict.fromkeys(_PROCESSES.values(), _keep),
}
"""How values of other tools are written in fields that have another unit."""


def find_similar_word(title: str, key: str) -> str:
    """Return the field, in backticks, that a misspelled word of another tool means: `env` for `enviroment`."""
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    words = _FOREIGN_WORDS.get(title, {})
    word = words.get(find_meant(key, words), "") if not {key, to_camel_case(key)} & words.keys() else ""
    return word if _ONE_FIELD.match(word) else ""


def find_value(name: str, found: str) -> str:
    """Return the value of a field that another word means, such as a platform by its operator; empty if unknown."""
    from jobgen.model.meant import find_meant

    words = _OTHER_VALUES.get(name.partition("[")[0].removesuffix("s"), {})
    return words.get(found.lower(), "") or words.get(find_meant(found, words), "")


def to_camel_case(key: str) -> str:
    """Return `nprocPerNode` for `nproc_per_node`, `nproc-per-node` and `--nproc-per-node`."""
    first, *rest = re.split("[-_]", key.lstrip("-"))
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
