"""GPUs and other devices: misspelled, uncounted, idle or shared."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.devices import PodClaim, find_meant_device, format_devices, is_device
from jobgen.k8s.node_agents import is_node_agent
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.k8s.resources import list_counted_pods
from jobgen.k8s.shell.commands import find_script, parse_command
from jobgen.k8s.workloads import POD_SETS, RAY_CLUSTERS, REPLICA_TYPES, find_pods
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, Place
from jobgen.model.quantity import parse_digits, to_milli
from jobgen.model.sentence import Sentence
from jobgen.spec.sweeps import GPUS


@rule("container", WARNING, fields=("resources",))
def gpu_typo(container: Container) -> Iterator[Violation]:
    """A resource name that resembles the name of a GPU, such as `nvidia.com/gpus`.

    Kubernetes accepts any name with a domain and waits for a node that offers it, so the pod stays `Pending`.

    Use the resource name of the device plugin in the cluster.

    When to turn it off: a device plugin of your own can advertise a resource that resembles a known name: accept it
    with an exception for the jobs that use it, and name the plugin.
    """
    # Imported late: most names are right.
    from jobgen.model.meant import is_same_name

    for amounts in (container.limits, container.requests):
        for key in amounts:
            meant = find_meant_device(str(key)) if "/" in key else ""
            if meant and not _is_declared(container, key):
                message = Sentence("no device plugin offers `{}`; did you mean `{}`?", key, meant)
                fix_steps = (FixStep("rename", At(amounts, key, is_key=True), meant),) if meant not in amounts else ()
                yield Violation(
                    At(amounts, key, is_key=True), message, fix_steps=fix_steps, safe=is_same_name(key, meant)
                )


def _is_declared(container: Container, key: Plain) -> bool:
    """Return True if the cluster declares the resource as its GPU resource."""
    return str(key) == container.pod.manifest.cluster.gpu_resource


@rule("container", WARNING, fields=("resources",))
def mixed_gpu_resources(container: Container) -> Iterator[Violation]:
    """Whole and virtual GPUs, or GPUs of two vendors, in one container.

    A node offers its cards through one device plugin, as `nvidia.com/gpu` or as `nvidia.com/vgpu`, and seldom has cards
    of two vendors. The pod usually stays `Pending`.

    Remove one of them; often it is a leftover.

    When to turn it off: nodes that offer cards of two vendors exist in laboratories: accept the container that uses
    both, on the line of the second resource.
    """
    limits = container.limits
    if len(limits) < 2:
        return
    found = [key for key in limits if "/" in key and is_device(str(key)) and to_milli(limits[key])]
    for number, key in enumerate(found[1:], 1):
        other = next((earlier for earlier in found[:number] if _are_exclusive(str(earlier), str(key))), None)
        if other is not None:
            message = Sentence("no node is likely to offer both `{}` and `{}`; remove one of them", key, other)
            related = ((At(limits, other, is_key=True), "the other resource"),)
            yield Violation(At(limits, key, is_key=True), message, related)


def _are_exclusive(one: str, other: str) -> bool:
    virtual = {one, other} == {"nvidia.com/gpu", "nvidia.com/vgpu"}
    return virtual or one.partition("/")[0] != other.partition("/")[0]


@rule("manifest", WARNING)
def uncounted_devices(manifest: Manifest) -> Iterator[Violation]:
    """A claim for devices whose number is not known, in a cluster with limits for GPUs.

    A pod's `resourceClaims` count as the devices that their ResourceClaim or ResourceClaimTemplate requests. The number
    is not known if the repository does not have the claim, the template or its DeviceClass, or if it requests all
    devices of a node. Then the job can exceed `cluster.budgets`, the quota of its queue in `cluster.queues`, or the
    limit of its sweep, and nothing reports that.

    Add the object to the repository, or request a number of devices.

    When to turn it off: when the claim belongs to a repository of the platform team, copy its template here for the
    check, or accept the jobs that use it by their paths.
    """
    cluster = manifest.cluster
    if not (cluster.budgets or cluster.queues or GPUS in manifest.annotations):
        return
    seen: set[tuple[str, str]] = set()
    for pod, count in list_counted_pods(manifest):
        for claim in pod.claims.values() if count else ():
            if not claim.is_counted and claim.key[1] and claim.key not in seen:
                seen.add(claim.key)
                yield _report_uncounted(claim)


def _report_uncounted(claim: PodClaim) -> Violation:
    name = f"`{claim.key[1]}`"
    reason = (
        claim.definition.uncounted if claim.definition else Sentence("the repository has no {} {}", claim.kind, name)
    )
    message = Sentence("the devices of {} do not count as GPUs of the job, because {}", name, reason)
    return Violation(claim.place, Sentence("{}; budgets and quotas can be exceeded", message))


_VISIBLE, _CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"
# What hides all GPUs, or leaves them to the device plugin.
_HIDDEN = ("", "none", "void")
# Variables of libraries: they number the devices that the container was given.
_NUMBERED = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_READ = frozenset((_VISIBLE, _CAPABILITIES, *_NUMBERED))


@rule("container", WARNING, fields=("env",), words=("_VISIBLE_DEVICES", _CAPABILITIES))
def exposed_devices(container: Container) -> Iterator[Violation]:
    """A variable with which a container uses other GPUs than the device plugin assigned to it, or none.

    `NVIDIA_VISIBLE_DEVICES` is how the device plugin tells the container runtime which GPUs a container gets. A value
    in the pod, such as `all`, replaces it: the container uses GPUs of other pods. `CUDA_VISIBLE_DEVICES` numbers the
    GPUs of the container from 0; a number that it does not have hides the GPU. `NVIDIA_DRIVER_CAPABILITIES` without
    `compute` leaves out the libraries of CUDA.

    Remove the variable.

    When to turn it off: monitoring of all GPUs of a node, as DCGM does it, needs `all`; suppress it on the variable
    of that agent. Training needs the variable in no case.
    """
    if _READ.isdisjoint(container.variables):
        return
    # mpi-operator hides the GPUs of a launcher, which `overwritten-env` reports.
    is_launcher = container.pod.role is not None and container.pod.role.name == "launcher"
    if container.pod.manifest.runs_on_every_node or is_launcher or is_node_agent(container.pod):
        return
    for name, entry in container.env:
        text = as_text(entry.get("value")).strip()
        if name == _VISIBLE and text.lower() not in _HIDDEN and "$" not in text:
            if container.gpus or not any(container.pod.devices.values()):
                effect = "uses GPUs of other pods" if text.lower() == "all" else "ignores which GPUs are free"
                message = Sentence(
                    "`{}: {}` replaces what the device plugin assigns, so the container {}", name, text, effect
                )
                yield Violation(At(entry, "value"), Sentence("{}; remove it", message))
        elif name in _NUMBERED and container.gpus:
            yield from _check_numbers(container, name, entry)
        elif name == _CAPABILITIES and container.gpus and text and not {"all", "compute"} & set(text.split(",")):
            message = Sentence(
                "`{}: {}` leaves out the libraries of CUDA, so the container cannot use its GPUs", name, text
            )
            yield Violation(At(entry, "value"), Sentence("{}; add `compute`, or remove it", message))


def _check_numbers(container: Container, name: str, entry: Mapping[str, Plain]) -> Iterator[Violation]:
    numbers = [number.strip() for number in as_text(entry.get("value")).split(",")]
    if not all(number.isdecimal() and len(number) < 5 for number in numbers):
        return
    beyond = [number for number in numbers if int(number) >= container.gpus]
    if beyond:
        gpus = pluralize(container.gpus, "GPU")
        message = Sentence("`{}` has `{}`, but the container has only {}, numbered from 0", name, beyond[0], gpus)
        yield Violation(
            At(entry, "value"), Sentence("{}, so it and the ones after it are not used; remove the variable", message)
        )


# A claim can be reserved for so many pods.
_MOST = 256


@rule("manifest", WARNING, words=("resourceClaims",))
def shared_device_claim(manifest: Manifest) -> Iterator[Violation]:
    """A ResourceClaim that several pods of one object name.

    A ResourceClaim is allocated once. All pods that name it share its devices, and devices of a node force all pods
    onto that node; the ones that do not fit there stay `Pending`. More than 256 pods cannot share a claim, which is an
    error.

    Use `resourceClaimTemplateName`: each pod gets a claim of its own.

    When to turn it off: sharing one GPU among the pods of a demo, with a claim made for that, is legitimate: accept
    it on the claim's name in the pod.
    """
    if not any("resourceClaims" in pod.spec for pod in manifest.pods):
        return
    key = (manifest.group, manifest.kind_name)
    for found in find_pods(manifest.object, POD_SETS.get(key) or REPLICA_TYPES.get(key, ())):
        spec = as_mapping(as_mapping(found.template).get("spec"))
        for entry in map(as_mapping, as_list(spec.get("resourceClaims"))):
            name = entry.get("resourceClaimName")
            if as_text(name) and found.total > 1:
                message = Sentence(
                    "all {} pods name the ResourceClaim `{}`, so they share its devices", found.total, as_text(name)
                )
                message += " and run on one node; use `resourceClaimTemplateName`, which gives each pod its own"
                yield Violation(
                    At(entry, "resourceClaimName"), message, severity=ERROR if found.total > _MOST else WARNING
                )


_PERCENT = ("nvidia.com/gpucores", "nvidia.com/gpumem-percentage")
_MEMORY = "nvidia.com/gpumem"
_MORE_THAN_ANY_GPU_HAS = 1_000_000_000  # thousandths of MiB: about a terabyte


@rule("container", ERROR, fields=("resources",))
def gpu_share_range(container: Container) -> Iterator[Violation]:
    """A GPU share above 100 percent, or more memory than any GPU has.

    `nvidia.com/gpumem` counts MiB, so `8Gi` means more than eight billion MiB and the pod stays `Pending` forever.
    `gpucores` and `gpumem-percentage` are percentages of each card; more than 100 is a warning.

    Write `8192` for 8 GiB, and request more cards instead of more than 100 percent.

    When to turn it off: HAMi rejects or never schedules such numbers. For a fork with other units, set the rule to
    `off` for the environment of that cluster.
    """
    limits = container.limits
    for name in _PERCENT:
        if name in limits and (to_milli(limits[name]) or 0) > 100_000:
            message = Sentence(
                "`{}` is a percentage of each GPU and must be at most 100; request more GPUs instead", name
            )
            yield Violation(At(limits, name), message, severity=WARNING)
    if _MEMORY in limits and (to_milli(limits[_MEMORY]) or 0) > _MORE_THAN_ANY_GPU_HAS:
        message = Sentence("`{}` counts MiB, and no GPU has that many; write `8192` for 8 GiB", _MEMORY)
        yield Violation(At(limits, _MEMORY), message)


_SHARES = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


@rule("container", INFO, fields=("resources",))
def gpu_share_without_count(container: Container) -> Iterator[Violation]:
    """Memory or cores of a GPU without a number of GPUs.

    HAMi then adds its configured default, usually one GPU, while quotas and queues that count GPUs count none.

    Add `nvidia.com/vgpu` or `nvidia.com/gpu`, whichever the cluster uses.

    When to turn it off: if HAMi's default count is what all jobs rely on, set the rule to `off` for that cluster:
    no queue there can count GPUs, which is what it tells you.
    """
    limits = container.limits
    key = next((key for key in limits if key in _SHARES), None)
    if key is not None and not any(is_device(str(name)) for name in limits):
        yield Violation(
            At(limits, key, is_key=True),
            Sentence("`{}` sets the share of each GPU, but nothing sets the number of GPUs; add it", key),
        )


@rule("job", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def master_worker_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A master and workers with different GPUs in a PyTorch job, where the master is one of the ranks that train.

    A rank without a GPU cannot take part in NCCL, and with different numbers of GPUs `torchrun` starts different
    numbers of processes. The other ranks wait.

    Request the same devices in both roles.

    When to turn it off: a master that only coordinates, without a rank of its own, must say so in its command;
    until jobgen can see it there, suppress the finding at the resources of the master.
    """
    master, worker = manifest.find_role("master"), manifest.find_role("worker")
    if not master or not worker or not worker.count or _resources(master) == _resources(worker):
        return
    if not all(claim.is_counted for role in (master, worker) for claim in role.pod.claims.values()):
        return
    ours, theirs = _devices(master), _devices(worker)
    if ours != theirs and not (_misnames_gpus(master) or _misnames_gpus(worker)):
        message = Sentence(
            "the master requests {}, but a worker {}; use the same", _format_devices(ours), _format_devices(theirs)
        )
        one, other = (worker, master) if theirs else (master, worker)
        yield Violation(_find_request(one), message, ((_find_request(other), f"the {other.name}"),))


def _misnames_gpus(role: Role) -> bool:
    """Return True if a role requests GPUs by a name that no device has, which is reported itself."""
    names = {str(name) for each in role.pod.containers for name in (*each.limits, *each.requests)}
    return any("gpu" in name.lower() for name in names.difference(role.pod.devices))


def _resources(role: Role) -> list[Plain]:
    return [(each.limits, each.requests) for each in role.pod.containers] + [role.pod.spec.get("resourceClaims")]


def _find_request(role: Role) -> Place:
    """Return the place where a role requests devices, else its own."""
    places = (container.device_place for container in role.pod.containers)
    return next((place for place in places if place is not None), role.place)


def _devices(role: Role) -> dict[str, int]:
    return {str(name): count for name, count in role.pod.devices.items() if count}


def _format_devices(devices: dict[str, int]) -> str:
    return " and ".join(f"`{name}: {count}`" for name, count in sorted(devices.items())) or "no accelerator"


@rule("manifest", WARNING, kinds=tuple(RAY_CLUSTERS))
def ray_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A `num-gpus` in `rayStartParams` other than the number of GPUs of the container.

    Ray trusts the parameter. With more GPUs than the container has, it gives tasks GPUs that do not exist; with
    fewer, some GPUs are never used. Without it, KubeRay sets the number from the limits of the container.

    Remove `num-gpus`.

    When to turn it off: to keep Ray from using a GPU that another container of the pod needs, a smaller number is
    right: suppress it on `num-gpus` and name that container.
    """
    if manifest.group != "ray.io":
        return
    cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
    # Ray runs in the first container.
    containers = {id(pod.template): pod.containers[0] for pod in manifest.pods if pod.containers}
    for group in map(as_mapping, (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))):
        parameters = as_mapping(group.get("rayStartParams"))
        container = containers.get(id(group.get("template")))
        declared = parse_digits(as_text(parameters.get("num-gpus")))
        # `resources` of a group replace the parameter.
        if container is None or declared is None or "resources" in group or not _is_known(container):
            continue
        if container.gpus != declared:
            has = pluralize(container.gpus, "GPU") if container.gpus else "no GPUs"
            message = Sentence("`num-gpus` is `{}`, but container `{}` has {}", declared, container.name, has)
            advice = "remove it, and KubeRay sets the number from the limits"
            yield Violation(
                At(parameters, "num-gpus"), Sentence("{}; {}", message, advice), ((container.device_place, ""),)
            )


def _is_known(container: Container) -> bool:
    """Return False if claims, or accelerators other than GPUs, may be what is counted."""
    has_claims = bool(as_mapping(container.data.get("resources")).get("claims"))
    return not has_claims and (bool(container.gpus) or not container.devices)


_IDLE = {
    "MXJob": ("scheduler", "server"),
    "TFJob": ("ps",),
    "TensorFlowTrainingJob": ("ps",),
    "MPIJob": ("launcher",),
}


_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")


@rule("job", WARNING, kinds=(*_IDLE, *_RUNTIMES))
def idle_gpus(manifest: Manifest) -> Iterator[Violation]:
    """GPUs on a role that does not train: a parameter server, a scheduler or a launcher.

    The role holds them as long as the job runs, and nothing computes on them. mpi-operator hides them from a launcher
    that is not a worker; training-operator turns a launcher that has them into a worker, with slots in the hostfile.
    The launcher of a runtime is in the hostfile only with `runLauncherAsNode`.

    Request GPUs only for the roles that train.

    When to turn it off: a parameter server that computes gradients on its device, as with some embedding tables,
    needs it: suppress the finding at the role's resources.
    """
    name = manifest.kind.name if manifest.kind else ""
    if name in _RUNTIMES:
        yield from _check_runtime(manifest)
    for role in manifest.roles if name in _IDLE else ():
        yield from _check_role(role, _IDLE[name])


def _check_role(role: Role, idle: tuple[str, ...]) -> Iterator[Violation]:
    manifest = role.manifest
    if role.name not in idle or not any(container.devices for container in role.pod.containers):
        return
    if role.name == "launcher":
        worker = manifest.find_role("worker")
        # A launcher without workers does the work itself.
        if not worker or not worker.count or manifest.spec.get("runLauncherAsWorker") is True:
            return
    for container in role.pod.containers:
        if container.devices:
            yield _report_idle(role, container)


def _check_runtime(manifest: Manifest) -> Iterator[Violation]:
    """Check the launcher of a runtime for MPI that has other nodes, which run the processes."""
    policy = get_path(manifest.spec, "mlPolicy", "mpi")
    if not isinstance(policy, dict) or policy.get("runLauncherAsNode") is True:
        return
    jobs = as_list(get_path(manifest.spec, "template", "spec", "replicatedJobs"))
    launcher = next((job for job in jobs if as_text(as_mapping(job).get("name")) == "launcher"), None)
    template = get_path(launcher, "template", "spec", "template")
    pods = [pod for pod in manifest.pods if pod.template is template]
    for container in (each for pod in pods for each in pod.containers if each.devices and len(jobs) > 1):
        gpus = format_devices(container.devices)
        message = Sentence("the launcher requests {}, but only the other nodes are in the hostfile", gpus)
        yield Violation(
            container.device_place,
            Sentence("{}; request them only for the nodes, or set `runLauncherAsNode: true`", message),
        )


def _report_idle(role: Role, container: Container) -> Violation:
    place = container.device_place
    gpus = format_devices(container.devices)
    if role.name != "launcher":
        message = Sentence(
            "`{}` does not train but requests {}; request them only for roles that train", role.replica_type, gpus
        )
        return Violation(place, message)
    kind = role.manifest.kind
    is_v1 = kind is not None and kind.api_version == "kubeflow.org/v1"
    effect = "so the operator adds its slots to the hostfile" if is_v1 else "which the operator hides from it"
    message = Sentence("the launcher requests {}, {}; request them only for the workers", gpus, effect)
    return Violation(place, message)


_PYTHON = lazy_pattern(r"(?:\S*/)?python[\d.]*")
# Launchers, programs and options that use several GPUs, or name a number of processes or devices.
_USES_SEVERAL = lazy_pattern(
    r"""(?ix) torchrun | torch\.distributed | torchx | accelerate | deepspeed | horovod | mpi(?:run|exec) | colossalai
    | \bray\b | lightning | litgpt | nemo | megatron | jax | flax | tensorflow | keras | vllm | sglang | tgi | trtllm
    | triton | llama | axolotl | swift | composer | fabric | ultralytics | yolo | spawn | launch | multi | parallel
    | distribut | ddp | fsdp | zero | strategy | device | n?gpus? | nproc | num[-_]?proc | world[-_]?size
    | workers?[-_]per | \$\{?(?:PET_|NPROC|WORLD_SIZE|NUM_GPUS)"""
)


@rule("role", INFO, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def single_process(role: Role) -> Iterator[Violation]:
    """A PyTorch pod with several GPUs whose command is `python train.py`, without a launcher.

    PyTorch uses one GPU for each process. Unless the script starts processes itself, as Lightning does, or splits the
    model, the other GPUs stay idle.

    Start the script with `torchrun --nproc-per-node=gpu`, or request one GPU for each pod.

    When to turn it off: a script that starts its own processes, such as one of Lightning or with `mp.spawn`, uses
    all GPUs: suppress it on the command and name the library.
    """
    main = role.pod.main_container
    if main is None or main.gpus < 2 or not role.count or main.init:
        return
    torchrun = [get_path(role.manifest.spec, field, "enabled") for field in ("torchrunConfig", "elastic")]
    if True in torchrun:
        return
    # The image is no evidence: most images of PyTorch have names such as `torch-distributed`.
    command = "\n".join(main.words)
    if ".py" not in command or "python" not in command:
        return
    variables = "\n".join(f"{name}={as_text(entry.get('value'))}" for name, entry in main.env if name != "NCCL_DEBUG")
    found = None if _USES_SEVERAL.search(f"{command}\n{variables}") else _find_script(main)
    if found:
        place, script = found
        message = Sentence("`python {}` is one process, and the pod has {} GPUs", script, main.gpus)
        advice = Sentence(
            "unless `{}` uses all of them, start it with `torchrun --nproc-per-node={}`", script, main.gpus
        )
        yield Violation(place, Sentence("{}; {}", message, advice), ((main.device_place, ""),))


def _find_script(main: Container) -> tuple[At, str] | None:
    """Return the place of the item with the only call of Python in a command line, and the file that it runs."""
    script = find_script(main)
    if script is None:
        arguments = [argument.text for argument in parse_command(main.command_line)]
        file = _find_file(arguments)
        return (main.word_place(0), file) if file else None
    # Imported late, because few commands are scripts.
    from jobgen.k8s.shell.steps import read_words

    files = [file for call in read_words(script.text) if (file := _find_file(call))]
    return (script.place, files[-1]) if files and ".sh" not in script.text else None


def _find_file(words: tuple[str, ...] | list[str]) -> str:
    """Return the file that a call of Python runs; "" if it is no such call."""
    if not words or not _PYTHON.fullmatch(words[0]):
        return ""
    options = [word for word in words[1:] if word not in ("-u", "-O", "-B")]
    return options[0] if options and options[0].endswith(".py") else ""
