"""Read the programs that the containers of a job start, with the variables that its operator sets, and its pods."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.operators.create import create_all
from jobgen.features.convert.operators.created import (
    Created,
    CreatedPod,
    Fields,
    as_fields,
    as_items,
    as_string,
    limit_pods,
)
from jobgen.features.launch.mounted_files import MountedFiles, to_text
from jobgen.features.launch.shell.interpreter import expand_references, run_command
from jobgen.features.launch.shell.values import Call, list_openings, to_word
from jobgen.features.launch.signs import find_trainers
from jobgen.features.launch.values import Pods, Program, Word, count_gpus
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.data import Plain, untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, find_at
from jobgen.model.quantity import to_milli

_PYTHON = lazy_pattern(r"(?:python|pypy)[\d.]*\Z")
_OPTIONS_OF_PYTHON = frozenset(("-W", "-X", "--check-hash-based-pycs"))
# Kinds whose operator counts all pods as nodes.
_COUNTED = frozenset(("PyTorchJob", "PyTorchTrainingJob", "TrainJob", "PaddleJob", "JAXJob", "XGBoostJob", "TFJob"))
# Labels with the product of a GPU, or the type of a node.
_PRODUCTS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)
_LAUNCHER = "launcher"
# What the images of servers start, to which `args` are added.
_SERVERS = (
    (lazy_pattern(r"(?:^|/)vllm/vllm-openai(?:[:@]|$)"), ("python3", "-m", "vllm.entrypoints.openai.api_server")),
    (lazy_pattern(r"(?:^|/)huggingface/text-generation-inference(?:[:@]|$)"), ("text-generation-launcher",)),
)
_FIELDS = frozenset(
    """args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy
    resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath
    terminationMessagePolicy tty volumeDevices volumeMounts workingDir""".split()
)
"""The fields of a container; an unknown one may be meant as `args`."""
# Variables that differ between the pods of a role, in a script with conditions.
_CONDITION = lazy_pattern(r"\bif\b|\bcase\b|&&|\|\|")
_RANKED = lazy_pattern(r"RANK|INDEX|HOSTNAME|hostname|PROCESS_ID")


class Launch(NamedTuple):
    """The programs that the containers of a role start, and the pods that they start on."""

    programs: tuple[Program, ...]
    pods: Pods
    container: Container
    """The container that starts them."""
    volumes: MountedFiles
    """The files that it mounts."""
    number: int
    """The place of the container among those of the job."""


def read_launches(manifest: Manifest, *, copies: bool) -> Iterator[Launch]:
    """Yield what each role of a job starts, if its command has a sign of a launcher, or is a script in a ConfigMap.

    `copies` are the roles with the container of another one, which have the same faults in other places; without it,
    they are left out. An object with locations has none.
    """
    found = find_trainers(manifest)
    if not found:
        return
    wanted: list[tuple[int, Pod, Container]] = []
    seen: list[Container] = []
    for number, (pod, container) in enumerate(found):
        if pod.role is not None and not pod.role.count:
            continue
        is_copy = any(container.data == each.data for each in seen)
        if not is_copy:
            seen.append(container)
        if is_copy == copies:
            wanted.append((number, pod, container))
    if not wanted:
        return
    is_ranked = any(_is_ranked(container) for _, container in found)
    with limit_pods(2 if is_ranked else 1):
        created = create_all(manifest.object, (), manifest.cluster, is_plain=True)
    for number, pod, container in wanted:
        first = _find_created(created, pod)
        reader = _Reader(manifest, container, first, created)
        launched = container if container.init else _find_workers(manifest, pod) or container
        names = {pod.role.replica_type.lower() for pod, each in found if pod.role is not None and not each.init}
        programs, pods = reader.list_programs(), _describe_pods(launched, reader, names)
        if container.init:
            # Operators set no variables in it, and it works before the others start.
            pods = pods._replace(count=None, kind="", elastic=None, slots=None, processes="", ranks=False)
        if is_ranked and _is_ranked(container) and not _start_same(programs, reader):
            # Only some of the pods launch.
            pods = pods._replace(count=None)
        yield Launch(programs, pods, container, reader.mounted, number)


def read_environments(manifest: Manifest) -> Iterator[tuple[Container, Mapping[str, Word]]]:
    """Yield the containers of a job, each with its variables and those that its operator sets."""
    with limit_pods(1):
        created = create_all(manifest.object, (), manifest.cluster, is_plain=True)
    for pod in manifest.pods:
        first = _find_created(created, pod)
        for container in pod.containers if pod.part == "whole" else ():
            yield container, _Reader(manifest, container, first, created).read_env()


def _is_ranked(container: Container) -> bool:
    text = container.search_text
    return _CONDITION.search(text) is not None and _RANKED.search(text) is not None


def _start_same(programs: Sequence[Program], reader: _Reader) -> bool:
    """Return True if the first, the second and the last pod start the same programs."""
    ranked = [pod for pod in reader.created.pods if pod.rank is not None]
    names = [each.name for each in programs]
    for pod in (*ranked[:2], *ranked[-1:]):
        others = _Reader(reader.manifest, reader.container, pod, reader.created).list_programs()
        if [each.name for each in others] != names:
            return False
    return True


def _find_created(created: Created, pod: Pod) -> CreatedPod | None:
    """Return the first pod of a role that the operator creates."""
    if pod.role is None:
        return None
    name = pod.role.replica_type.lower()
    pods = [each for each in created.pods if each.role.lower() == name] or [
        each for each in created.pods if each.rank == 0
    ]
    return next(iter(pods), None)


def _find_workers(manifest: Manifest, pod: Pod) -> Container | None:
    """Return the container that a launcher on this pod starts processes in; None if it is its own."""
    worker = manifest.find_role("worker")
    is_launcher = pod.role is not None and pod.role.name == _LAUNCHER
    return worker.pod.main_container if is_launcher and worker else None


class _Reader:
    """Reads the command of a container."""

    def __init__(self, manifest: Manifest, container: Container, pod: CreatedPod | None, created: Created) -> None:
        self.manifest = manifest
        self.container = container
        self.pod = pod
        self.created = created
        self.spec: Fields = untraced(container.pod.spec) if pod is None else pod.spec
        field = "initContainers" if container.init else "containers"
        containers = [as_fields(each) for each in as_items(self.spec.get(field))]
        named = [each for each in containers if each.get("name") == container.name]
        self.data: Fields = next(iter(named or containers), {})
        mounts, volumes = as_items(self.data.get("volumeMounts")), as_items(self.spec.get("volumes"))
        self.mounted = MountedFiles([*map(as_fields, mounts)], [*map(as_fields, volumes)], self.find_config)

    def list_programs(self) -> tuple[Program, ...]:
        """Return the programs that it starts."""
        env = self.read_env()
        words = [
            to_word(expand_references(as_string(text), env), node)
            for field in ("command", "args")
            for text, node in self.list_words(field)
        ]
        if not _FIELDS.issuperset(self.data):
            words.append(Word(None, None, is_list=True))
        folder = as_string(self.data.get("workingDir"))
        entrypoint = self.manifest.spec.get("entrypoint") if self.manifest.group == "ray.io" else None
        if entrypoint is not None:
            words = [Word("bash", None), Word("-c", None)]
            words.append(Word(as_text(entrypoint), At(self.manifest.spec, "entrypoint")))
        elif not as_items(self.data.get("command")) and words and not _is_program(words[0]):
            # They are arguments of the image's own entry point.
            image = self.container.image
            started = next((command for pattern, command in _SERVERS if pattern.search(image)), None)
            if started is None:
                return ()
            words = [*(Word(text, None) for text in started), *words]
        return tuple(filter(None, map(to_program, run_command(words, env, self.mounted.read, folder))))

    def list_words(self, field: str) -> Iterator[tuple[Any, At | None]]:
        """Yield the words of a field, each with where it was written."""
        texts, words = as_items(self.data.get(field)), as_list(self.container.data.get(field))
        same = len(texts) == len(words)
        yield from ((text, At(words, at) if same else None) for at, text in enumerate(texts))

    def read_env(self) -> dict[str, Word]:
        """Return the variables of the container, in the order in which later ones win."""
        env: dict[str, Word] = {}
        places = {name: At(entry, "value") for name, entry in self.container.env}
        for source in map(as_fields, as_items(self.data.get("envFrom"))):
            self.add_all(env, source)
        for entry in map(as_fields, as_items(self.data.get("env"))):
            # An item without a name can be meant as any variable.
            name, value = as_string(entry.get("name"), "*"), entry.get("value")
            if "valueFrom" in entry:
                env[name] = Word(self.read_reference(as_fields(entry["valueFrom"])), None)
                continue
            text = "" if value is None else str(value)
            place = places.get(name)
            is_same = place is not None and place.node == value
            expanded = to_word(expand_references(text, env), place if is_same else None)
            env[name] = expanded
        self.add_unseen(env)
        if self.pod is not None and self.pod.hostname:
            env.setdefault("HOSTNAME", Word(self.pod.hostname, None))
        return env

    def add_unseen(self, env: dict[str, Word]) -> None:
        """Add what operators set that the pods of `create_all` do not have."""
        manifest = self.manifest
        if manifest.kind_name == "LeaderWorkerSet":
            size = as_integer(get_path(manifest.spec, "leaderWorkerTemplate", "size"))
            namespace = manifest.namespace or "default"
            env["LWS_LEADER_ADDRESS"] = Word(f"{manifest.name}-0.{manifest.name}.{namespace}", None)
            env["LWS_GROUP_SIZE"] = Word(str(1 if size is None else size), None)
            env["LWS_WORKER_INDEX"] = Word("0", None)
        elif manifest.group == "batch.volcano.sh" and "pytorch" in as_mapping(manifest.spec.get("plugins")):
            # Without a task for the master, it depends on the version what the plugin sets.
            for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"):
                env.setdefault(name, Word(None, None))
        elif self.pod is None and self.container.pod.role is not None:
            # The operator is not known, or the runtime of a TrainJob is not.
            env["*"] = Word(None, None)

    def add_all(self, env: dict[str, Word], source: Fields) -> None:
        """Add the variables of an item of `envFrom`: those of an object that is not known can have any names."""
        prefix = as_string(source.get("prefix"))
        name = as_string(as_fields(source.get("configMapRef")).get("name"))
        data = self.find_config(name) if name else None
        if data is not None:
            env.update((f"{prefix}{key}", Word(to_text(text), None)) for key, text in data.items())
            return
        secret = as_string(as_fields(source.get("secretRef")).get("name"))
        keys = self.manifest.find_config(self.manifest.namespace, secret, "Secret") if secret else None
        if keys is not None:
            env.update((f"{prefix}{key}", Word(None, None)) for key in keys)
            return
        others = env.get("*")
        openings = list_openings(others) if others else ()
        env["*"] = Word(None, None, "" if not prefix or "" in openings else " ".join((*openings, prefix)))

    def read_reference(self, source: Fields) -> str | None:
        reference = as_fields(source.get("configMapKeyRef"))
        data = self.find_config(as_string(reference.get("name"))) if reference else None
        if data is not None:
            return to_text(data.get(as_string(reference.get("key"))))
        path = as_string(as_fields(source.get("fieldRef")).get("fieldPath"))
        found = path.removeprefix("metadata.annotations['").removeprefix("metadata.labels['").removesuffix("']")
        if self.pod is None or found == path:
            return None
        value = self.pod.annotations.get(found, self.pod.labels.get(found))
        return value if isinstance(value, str) and "<" not in value else None

    def find_config(self, name: str, *, is_traced: bool = False) -> Mapping[str, Plain] | None:
        """Return the data of a ConfigMap that the operator creates, or that the repository has."""
        for each in self.created.objects:
            if each.kind == "ConfigMap" and each.name == name:
                return each.data
        if is_traced:
            return self.manifest.find_config(self.manifest.namespace, name, is_traced=True)
        return self.manifest.find_config(self.manifest.namespace, name)


def _is_program(word: Word) -> bool:
    """Return True if the first of the arguments starts a program by itself, as after an entry point that runs them."""
    return bool(word.text) and not str(word.text).startswith("-")


def to_program(call: Call) -> Program | None:
    """Return the program of a call: the script or module, if it is Python."""
    words = call.words
    path = words[0].text
    if path is None:
        return None
    name = posixpath.basename(path)
    if not _PYTHON.match(name):
        return Program(name, words[1:], call.env, call.files, words[0].node, call.is_certain, path)
    at = 1
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text != "-":
        if text in ("-m", "-c") or (text[:2] in ("-m", "-c") and len(text) > 2):
            break
        at += 2 if text in _OPTIONS_OF_PYTHON else 1
    if at >= len(words) or words[at].text is None:
        return Program("python", words[1:], call.env, call.files, words[0].node, call.is_certain, path)
    text = str(words[at].text)
    if text == "-m" and at + 1 < len(words) and words[at + 1].text is not None:
        at += 1
        text = str(words[at].text)
        return Program(text, words[at + 1 :], call.env, call.files, words[at].node, call.is_certain, text, True)
    if text.startswith("-"):
        return Program("python", words[1:], call.env, call.files, words[0].node, call.is_certain, path)
    name = posixpath.basename(text)
    return Program(name, words[at + 1 :], call.env, call.files, words[at].node, call.is_certain, text)


def start_words(program: Program, words: Sequence[Word]) -> tuple[Program, ...]:
    """Return the programs that a launcher starts with the rest of its words."""
    calls = run_command(words, program.env, program.files)
    found = filter(None, map(to_program, calls))
    return tuple(each._replace(is_certain=each.is_certain and program.is_certain) for each in found)


def _describe_pods(container: Container, reader: _Reader, launching: set[str]) -> Pods:
    manifest, pod = reader.manifest, container.pod
    role = pod.role
    kind = "VolcanoJob" if manifest.group == "batch.volcano.sh" else manifest.kind_name
    created = reader.created.pods
    ranked = [each for each in created if each.rank is not None]
    if kind not in _COUNTED and kind != "MPIJob":
        ranked = [each for each in ranked if not launching or each.role.lower() in launching or not each.role]
    names = {each.role.lower() for each in ranked}
    roles = [each for each in manifest.roles if each.replica_type.lower() in names]
    roles = roles or (manifest.roles if len(manifest.roles) == 1 else [])
    count: int | None = sum(each.count for each in roles) if ranked and roles else None
    if kind in _COUNTED and any(each.role.lower() not in launching for each in ranked if len(launching) and role):
        # Some roles do something else.
        count = None
    counts: tuple[Place, ...] = tuple(place for each in manifest.roles for place, _ in each.compared_count)
    if kind == "LeaderWorkerSet":
        size = as_integer(get_path(manifest.spec, "leaderWorkerTemplate", "size"))
        count = 1 if size is None else size
        counts = tuple(filter(None, (find_at(manifest.spec, "leaderWorkerTemplate", "size"),)))
    elif not created and role is None:
        # A TrainJob decides how many pods a runtime has.
        count = None if kind.endswith("TrainingRuntime") else 1
    elif kind == "TrainJob" and role is not None and "numNodes" not in role.replica_spec:
        # The runtime decides.
        count = None
    own = container is reader.container
    plain = as_fields(reader.data.get("resources") if own else untraced(container.data.get("resources")))
    limits = {**as_fields(plain.get("requests")), **as_fields(plain.get("limits"))}
    return Pods(
        container,
        count,
        count_gpus(container, limits),
        _count_cpus(limits),
        kind,
        role.replica_type if role else "",
        _read_elastic(manifest),
        _read_slots(manifest, kind),
        reader.pod.processes if reader.pod is not None else "",
        _find_product(pod),
        counts,
        kind not in ("Deployment", "StatefulSet", "Pod", "ReplicaSet", "DaemonSet", "CronJob"),
    )


def _find_product(pod: Pod) -> str:
    """Return the GPU product, or the instance type, that a pod selects; empty if it can be one of several."""
    selector = as_mapping(pod.spec.get("nodeSelector"))
    required = get_path(pod.spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = as_list(as_mapping(required).get("nodeSelectorTerms"))
    # A node need only match one of several terms.
    for expression in as_list(as_mapping(terms[0]).get("matchExpressions")) if len(terms) == 1 else ():
        wanted = as_mapping(expression)
        values = as_list(wanted.get("values"))
        if as_text(wanted.get("operator")) == "In" and len(values) == 1:
            selector = {as_text(wanted.get("key")): values[0], **selector}
    return next((as_text(selector[label]) for label in _PRODUCTS if label in selector), "")


def _count_cpus(limits: Fields) -> float | None:
    amount = to_milli(limits.get("cpu"))
    return None if amount is None else amount / 1000


def _read_elastic(manifest: Manifest) -> tuple[int, int] | None:
    policy = manifest.spec.get("elasticPolicy")
    worker = manifest.find_role("worker")
    if not isinstance(policy, dict) or manifest.kind_name != "PyTorchJob":
        return None
    default = worker.count if worker else 0
    least, most = (as_integer(policy.get(field)) for field in ("minReplicas", "maxReplicas"))
    return (least or most or default, most or least or default)


def _read_slots(manifest: Manifest, kind: str) -> int | None:
    if kind != "MPIJob" or manifest.group == "batch.tensorstack.dev":
        return None
    written = as_integer(manifest.spec.get("slotsPerWorker"))
    return 1 if written is None else written
