"""Variables of a container, and the address of the first process."""

from collections.abc import Iterator, Sequence

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES, find_pods
from jobgen.model.data import Plain, location_of
from jobgen.model.features import find_part
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, Place, find_at, identify, node_at
from jobgen.model.quantity import parse_digits
from jobgen.model.sentence import Sentence
from jobgen.spec.kinds import parse_version

_MASTER = frozenset(("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"))
_TORCH = frozenset(("PET_NNODES", "PET_NPROC_PER_NODE"))
_RAY = frozenset("FQ_RAY_IP RAY_CLUSTER_NAME RAY_CLUSTER_NAMESPACE RAY_CLOUD_INSTANCE_ID RAY_NODE_TYPE_NAME".split())
# The plugins of a Job of Volcano that set variables.
_PLUGINS = {"pytorch": _MASTER, "tensorflow": frozenset(("TF_CONFIG",)), "mpi": frozenset(("MPI_HOST",))}
_RESERVED = {
    **dict.fromkeys(("RayCluster", "RayJob", "RayService"), _RAY | {"KUBERAY_GEN_RAY_START_CMD"}),
    "Job": frozenset().union(*_PLUGINS.values(), ("VC_TASK_INDEX", "VK_TASK_INDEX")),
    "TFJob": frozenset(("TF_CONFIG",)),
    "XGBoostJob": _MASTER,
    "JAXJob": frozenset(("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")),
    "PaddleJob": frozenset(("PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER")),
    "MXJob": frozenset(
        ("MX_CONFIG", "DMLC_PS_ROOT_PORT", "DMLC_PS_ROOT_URI", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER", "DMLC_ROLE")
    ),
    "MPIJob": frozenset(
        """OMPI_MCA_orte_default_hostfile I_MPI_HYDRA_HOST_FILE HYDRA_HOST_FILE NVIDIA_VISIBLE_DEVICES
        NVIDIA_DRIVER_CAPABILITIES""".split()
    ),
    "PyTorchJob": _MASTER | _TORCH | {"PET_NODE_RANK"},
}


# Variables that a controller sets in each pod, but not if the pod has them: all pods then have one value.
_NUMBERS = {
    **dict.fromkeys(("Job", "JobSet"), frozenset(("JOB_COMPLETION_INDEX",))),
    "LeaderWorkerSet": frozenset(("LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS")),
}
_NONE: frozenset[str] = frozenset()
# The variable with the hostfile of each implementation of MPI.
_HOSTFILES = {"Intel": "I_MPI_HYDRA_HOST_FILE", "MPICH": "HYDRA_HOST_FILE"}


@rule("container", WARNING, fields=("env",), kinds=(*_RESERVED, *_NUMBERS))
def overwritten_env(container: Container) -> Iterator[Violation]:
    """An environment variable that the operator sets itself, such as `WORLD_SIZE` or `TF_CONFIG`.

    The operator appends its own value, and of two variables with the same name the last one wins. The value in the
    manifest has no effect. Kubernetes and LeaderWorkerSet do not set the index of a pod if the manifest has it: then
    all pods have the same one, and do the same work or never find each other.

    Remove the variable.

    When to turn it off: to document the value for people who run the image by hand, a comment serves better than
    the variable; there is no case in which the value would reach the program.
    """
    manifest = container.pod.manifest
    numbers, reserved = _NUMBERS.get(manifest.kind_name, _NONE), _RESERVED.get(manifest.kind_name, _NONE)
    if container.init or (numbers | reserved).isdisjoint(container.variables):
        return
    for name, entry in container.env:
        if name in numbers and as_text(entry.get("value")) and "valueFrom" not in entry:
            message = Sentence(
                "all pods get this `{}`, because the controller sets it only if the pod does not have it", name
            )
            yield Violation(At(entry, "name"), Sentence("{}; remove it", message))
    for name, entry in container.env:
        if name in reserved and _is_set_by_operator(name, container, manifest):
            yield Violation(
                At(entry, "name"),
                Sentence("the operator overwrites `{}`, so the value here has no effect; remove it", name),
            )


def _is_set_by_operator(name: str, container: Container, manifest: Manifest) -> bool:
    """Return True if the operator sets the variable in this job."""
    if manifest.group == "ray.io":
        return container is container.pod.containers[0]
    if manifest.kind_name == "Job":
        plugins = as_mapping(manifest.spec.get("plugins")) if manifest.group == "batch.volcano.sh" else {}
        by_env = "env" in plugins and name in ("VC_TASK_INDEX", "VK_TASK_INDEX")
        return by_env or any(plugin in plugins and name in names for plugin, names in _PLUGINS.items())
    if manifest.kind_name == "PyTorchJob":
        if name in _TORCH:
            return not manifest.operator_version or parse_version(manifest.operator_version) >= (1, 7)
        return manifest.find_role("master") is not None
    if manifest.kind_name == "TFJob":
        return manifest.pod_count > 1 and container.name == "tensorflow"
    if manifest.kind_name == "MPIJob":
        role = container.pod.role
        if role is None or role.name != "launcher" or container is not container.pod.containers[0]:
            return False
        if name.startswith("NVIDIA_"):
            # The operator hides GPUs from a launcher that is not a worker.
            return manifest.spec.get("runLauncherAsWorker") is not True and bool(manifest.find_role("worker"))
        implementation = as_text(manifest.spec.get("mpiImplementation"))
        return name == _HOSTFILES.get(implementation, "OMPI_MCA_orte_default_hostfile")
    return True


# Variables with the network interface of a library; other pods are not reached through the loopback interface.
_INTERFACES = frozenset(
    """NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME RCCL_SOCKET_IFNAME HCCL_SOCKET_IFNAME HOROVOD_GLOO_IFACE
    UCX_NET_DEVICES OMPI_MCA_btl_tcp_if_include OMPI_MCA_oob_tcp_if_include""".split()
)
_ADDRESSES = frozenset(
    "MASTER_ADDR PET_MASTER_ADDR PET_RDZV_ENDPOINT RDZV_ENDPOINT COORDINATOR_ADDRESS JAX_COORDINATOR_ADDRESS".split()
)
_MEETING = _INTERFACES | _ADDRESSES
_SHARED_OPTIONS = ("rdzv-id", "master-port")
_OPTION = lazy_pattern(
    r"--(rdzv[-_]id|master[-_]port|rdzv[-_]endpoint|master[-_]addr|dist[-_]url|dist[-_]init[-_](?:method|addr)"
    r"|coordinator[-_]address)(?:=|\s+|\Z)[\"']?((?:\$\([^)]*\)+|`[^`]*`|[^\s\"';&|])*)"
)
# The variable with the address of the first pod, where it is another one, or none.
_FIRST = {"JAXJob": "COORDINATOR_ADDRESS", "TrainJob": "PET_MASTER_ADDR", "PaddleJob": "", "MPIJob": "", "Job": ""}
_LOOPBACK = lazy_pattern(r"(?:tcp://)?(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(?::\d*)?")
# What a shell, or each pod, makes something else of.
_RANDOM = lazy_pattern(
    r"\$\{?S?RANDOM\b|\$\$(?!\w|[({])|\$\(\(.*\bRANDOM\b|(?:\$\(|`)\s*(?:uuidgen|date|shuf|openssl)\b"
)
_OWN_NAME = lazy_pattern(
    r"(?:tcp://)?[\"']?(?:\$\{?HOSTNAME\}?|\$\(\s*(?:hostname|HOSTNAME)\b[^)]*\)|`hostname[^`]*`|\$\(?\{?POD_(?:IP|NAME)[)}]?)"
)
# Another port of sshd or ssh, in commands or variables.
_SSH_PORT = lazy_pattern(r"(?is)\b(?:sshd?|plm_rsh_args)\b.{0,200}?(?:-p\s*\d|port)")
_EXPORT = lazy_pattern(r"\bMASTER_ADDR=[\"']?([\w.-]+)")
# Settings that NCCL must have in common in all processes.
_COMMON = "NCCL_ALGO NCCL_PROTO NCCL_NET NCCL_IB_DISABLE NCCL_NET_PLUGIN NCCL_P2P_NET_CHUNKSIZE NCCL_BUFFSIZE".split()
# In objects of these kinds all pods with devices train together.
_TOGETHER = "JAXJob MPIJob PaddleJob PyTorchJob PyTorchTrainingJob TrainJob DeepSpeedJob".split()
# In others, a command says so.
_MULTI_NODE = lazy_pattern(
    r"--nnodes[= ](?!1\b)|--node[-_]rank|--num[-_]machines|--nnodes\b.*\$|MASTER_ADDR=|LWS_LEADER_ADDRESS"
)
_KINDS = (*_TOGETHER, "Job", "JobSet", "LeaderWorkerSet")
_SERVERS = ("DaemonSet", "Deployment", "Pod", "ReplicaSet", "StatefulSet")
_MANY = 1 << 31
# Kinds whose pods have names that are known.
_NAMED = (("batch", "Job"), ("jobset.x-k8s.io", "JobSet"))


@rule("manifest", WARNING, kinds=(*_KINDS, *_SERVERS))
def unreachable_rendezvous(manifest: Manifest) -> Iterator[Violation]:
    """An address, an interface or an id with which the pods of a distributed job never find each other.

    The loopback interface and `localhost` reach the pod itself, not other pods. An id such as `$RANDOM`, or the own
    name of a pod as address, is different in every pod. NCCL needs the same algorithm, protocol and transport in all
    processes. The pods of a Job have host names only with `subdomain`, and those of a JobSet are
    `<jobset>-<job>-<number>-<index>.<subdomain>`. mpirun reaches workers through port 22, which belongs to the node on
    the node's own network, and with a key that only root can read in `/root/.ssh`. Such a job hangs in
    `init_process_group`, or in its first collective operation, and holds its GPUs. `ray start` joins a cluster at port
    6379 of its head; 8265 is the dashboard, and 10001 is for clients.

    Use the address of one pod, such as `$MASTER_ADDR`, the name of the job as id, and the same settings in all pods.

    When to turn it off: for a program that replaces the address at its start, suppress it on the argument.
    """
    for container in (each for pod in manifest.pods for each in pod.containers):
        yield from _check_ray(container)
    if manifest.kind_name in _SERVERS:
        return
    pods = [pod for pod in _list_pods(manifest) if pod[1]]
    if sum([count for _, count in pods]) < 2:
        return
    mains = [(main, count) for pod, count in pods if (main := pod.main_container)]
    together = manifest.kind_name in _TOGETHER
    mains = [each for each in mains if together or _MULTI_NODE.search(each[0].search_text)]
    seen: set[object] = set()
    for main, count in mains:
        for place, message in (*_check_env(main, count), *_check_options(main, count)):
            # Roles can have a value in common, from one line.
            key = (location_of(place.node) or identify(place), message)
            if key not in seen:
                seen.add(key)
                yield Violation(place, message)
    if manifest.kind_name == "MPIJob":
        yield from _check_ssh(manifest)
    elif together:
        yield from _check_settings([main for main, _ in mains if main.gpus])
    for main, _ in mains if (manifest.group, manifest.kind_name) in _NAMED else ():
        yield from _check_hosts(main)


# An address at which a node of Ray cannot join, because another part of Ray has the port.
_RAY_START = lazy_pattern(
    r"\bray\s+start\b(?![^;&|]{0,400}--head)[^;&|]{0,400}?\s--address[=\s]\s*[\"']?((?:ray://)?([^\s\"':;&|/]+):(8265|10001))(?![\w:])"
)
_RAY_PORTS = {"8265": "that of the dashboard", "10001": "for clients"}


def _check_ray(container: Container) -> Iterator[Violation]:
    """Check that a node of Ray joins at the port of the head that is for nodes."""
    text = container.search_text
    found = _RAY_START.search(text) if "--address" in text and "start" in text else None
    if found is None:
        return
    address, host, port = found.groups()
    place = next((each for each in container.value_places if address in as_text(each.node)), None)
    message = Sentence(
        "port {} of `{}` is {}, where `ray start` cannot join; write `--address={}:6379`, or the `--port` of the head",
        port,
        host,
        _RAY_PORTS[port],
        host,
    )
    yield Violation(place, message)


def _list_pods(manifest: Manifest) -> list[tuple[Pod, int]]:
    """Return the pods of an object, and how many there are."""
    if manifest.kind is not None:
        return [(role.pod, role.count) for role in manifest.roles]
    key = (manifest.group, manifest.kind_name)
    found = find_pods(manifest.object, POD_SETS.get(key) or REPLICA_TYPES.get(key, ()))
    return [(Pod(as_mapping(each.template), manifest), each.total) for each in found if isinstance(each.template, dict)]


def _check_env(main: Container, count: int) -> Iterator[tuple[At, str]]:
    for name, entry in main.env if not _MEETING.isdisjoint(main.variables) else ():
        text = as_text(entry.get("value")).strip()
        if name in _INTERFACES and text and set(text.removeprefix("=").split(",")) == {"lo"}:
            message = f"`{name}: {text}` is the loopback interface, which does not reach the pods on other nodes"
            yield At(entry, "value"), f"{message}, so the job hangs; remove it, or exclude it: `^lo,docker0`"
        elif name in _ADDRESSES and count > 1 and _LOOPBACK.fullmatch(text) and not _is_replaced(main, name):
            message = f"`{name}: {text}` is the pod itself, so its {count} pods never find each other"
            yield At(entry, "value"), f"{message}; write the address of one pod"


def _is_replaced(main: Container, name: str) -> bool:
    """Return True if the operator replaces a variable, which another rule reports."""
    return main.pod.manifest.kind_name == "PyTorchJob" and name == "MASTER_ADDR"


def _check_options(main: Container, count: int) -> Iterator[tuple[At, str]]:
    """Check options of launchers, in arguments and in scripts."""
    wording = main.search_text
    if "--" not in wording or "--standalone" in wording or not _OPTION.search(wording):
        return
    for option, text, place in _find_options(main):
        shown = f"`--{option}={text}`"
        name = option.replace("_", "-")
        if name in _SHARED_OPTIONS:
            if _RANDOM.search(text) or (name == "rdzv-id" and _OWN_NAME.match(text)):
                message = f"{shown} is different in every pod, so the nodes never find each other"
                yield place, f"{message}; write one that all pods share, such as the name of the job"
        elif count > 1 and (_LOOPBACK.fullmatch(text) or _OWN_NAME.match(text)):
            message = f"{shown} is the address of the pod itself, so its {count} pods never find each other"
            if not _is_reported(main.pod.manifest, place, text):
                name = _FIRST.get(main.pod.manifest.kind_name, "MASTER_ADDR")
                yield place, f"{message}; write the address of one pod{f', such as `$({name})`' if name else ''}"


def _is_reported(manifest: Manifest, place: At, text: str) -> bool:
    """Return True if the launcher that takes an address is reported for it."""
    find_faults = find_part("job.launch.faults")
    faults = find_faults(manifest) if find_faults is not None else ()
    return any(text == fault.address and _is_same(fault.node, place) for fault in faults)


def _is_same(place: Place, other: At) -> bool:
    """Return True for the same entry, or entries that come from one line."""
    at = location_of(node_at(place))
    return identify(place) == identify(other) or (at is not None and at == location_of(other.node))


def _find_options(main: Container) -> Iterator[tuple[str, str, At]]:
    """Yield the options that pods meet with, their values as they are written, and the place of the item with them."""
    words = main.words
    for index, word in enumerate(words):
        for found in _OPTION.finditer(word):
            if found[2]:
                yield found[1], found[2], main.word_place(index)
            elif index + 1 < len(words) and found.end() == len(word):
                yield found[1], words[index + 1], main.word_place(index + 1)


def _check_settings(mains: Sequence[Container]) -> Iterator[Violation]:
    """Check that the processes of all roles have the same settings of NCCL."""
    if len(mains) < 2 or any("envFrom" in main.data for main in mains):
        return
    shared = frozenset(_COMMON).intersection(*[main.variables for main in mains])
    for name in _COMMON if shared else ():
        found = [entry for main in mains for key, entry in main.env if key == name and as_text(entry.get("value"))]
        if len(found) == len(mains) and len({as_text(entry.get("value")) for entry in found}) > 1:
            message = Sentence(
                "`{}` differs between the roles of the job, and NCCL hangs if it is not the same in all pods", name
            )
            yield Violation(At(found[-1], "value"), Sentence("{}; write the same value in every role", message))


def _check_ssh(manifest: Manifest) -> Iterator[Violation]:
    """Check that mpirun can reach the workers of mpi-operator with ssh."""
    worker, launcher = manifest.find_role("worker"), manifest.find_role("launcher")
    if worker is None or launcher is None or manifest.kind is None or manifest.kind.operator != "mpi-operator":
        return
    texts = [container.search_text for role in (worker, launcher) for container in role.pod.containers]
    host_network = worker.pod.spec.get("hostNetwork")
    if host_network is True and not any(_SSH_PORT.search(text) for text in texts):
        message = Sentence(
            "on the network of the node, the sshd of the node has port 22, so the launcher never reaches the"
        )
        yield Violation(
            At(worker.pod.spec, "hostNetwork"),
            Sentence("{} workers; remove `hostNetwork`, or run sshd on another port", message),
        )
    if as_text(manifest.spec.get("sshAuthMountPath")) not in ("", "/root/.ssh"):
        return
    for role in (worker, launcher):
        main = role.pod.main_container
        holders = (*([main.data] if main else []), role.pod.spec)
        users = (find_at(holder, "securityContext", "runAsUser") for holder in holders)
        place = next((each for each in users if each is not None and each.node is not None), None)
        user = as_integer(place.node) if place is not None else None
        if user:
            message = Sentence(
                "user `{}` cannot read the key in `/root/.ssh`, so ssh fails and the launcher never", user
            )
            yield Violation(
                place, Sentence("{} reaches the workers; set `sshAuthMountPath` to a folder of the user", message)
            )


def _check_hosts(main: Container) -> Iterator[Violation]:
    """Check addresses that are plainly meant to be those of pods of the same Job or JobSet."""
    values = [(as_text(entry.get("value")), entry) for name, entry in main.env if name in _ADDRESSES]
    texts = [(text, At(entry, "value")) for text, entry in values]
    texts += [(text, place) for option, text, place in _find_options(main) if option[:4] != "rdzv" or "end" in option]
    texts += [(found[1], place) for place in main.command_places for found in _EXPORT.finditer(as_text(place.node))]
    seen: set[str] = set()
    for text, place in texts:
        host = text.removeprefix("tcp://").partition(":")[0]
        wanted = _find_wanted_host(host, main) if host not in seen else ""
        seen.add(host)
        if wanted:
            message = Sentence("`{}` is not the host name of a pod, so the other pods never find it", host)
            yield Violation(place, Sentence("{}; {}", message, wanted))


def _find_wanted_host(host: str, main: Container) -> str:
    """Return what to write instead of a host that looks like a pod of the same object; empty if it is one."""
    manifest, (first, _, rest) = main.pod.manifest, host.partition(".")
    subdomain = as_text(main.pod.spec.get("subdomain"))
    if not manifest.name or not first.startswith(f"{manifest.name}-"):
        return ""
    numbers = first.removeprefix(f"{manifest.name}-").rsplit("-", 2)
    if manifest.kind_name == "Job":
        is_meant = len(numbers) == 1 and numbers[0].isdecimal()
        if not is_meant or (subdomain and rest.partition(".")[0] == subdomain):
            return ""
        if subdomain:
            return f"write `{first}.{subdomain}`"
        name = manifest.name
        return f"set `subdomain: {name}` in the pods, add a headless Service `{name}`, and write `{first}.{name}`"
    return _find_host_of_job_set(numbers, rest, manifest) if rest else ""


def _find_host_of_job_set(parts: list[str], rest: str, manifest: Manifest) -> str:
    """Return what to write instead of a host with these parts: the replicated Job, its Job, the index of the pod."""
    domain = as_text(get_path(manifest.spec, "network", "subdomain")) or manifest.name
    items = [as_mapping(item) for item in as_list(manifest.spec.get("replicatedJobs"))]
    jobs = {as_text(item.get("name")): item for item in items}
    numbers = [number for part in parts[1:] if (number := parse_digits(part)) is not None]
    is_numbered = len(parts) == 3 and len(numbers) == 2
    is_inside = rest.partition(".")[0] == domain
    if not is_inside and not is_numbered:
        return ""
    item = jobs.get(parts[0]) if is_numbered else None
    counts = (
        _read_count(get_path(item, "replicas"), 1),
        _read_count(get_path(item, "template", "spec", "completions"), _MANY),
    )
    is_pod = item is not None and numbers[0] < counts[0] and numbers[1] < counts[1]
    if is_pod and is_inside:
        return ""
    start = "-".join(parts)
    near = next((job for job in jobs if f"{start}-".startswith(f"{job}-")), next(iter(jobs), "<job>"))
    place = "-".join(parts[1:]) if is_numbered and (is_pod or item is None) else "0-0"
    return f"write `{manifest.name}-{near}-{place}.{domain}`"


def _read_count(node: Plain, default: int) -> int:
    number = as_integer(node)
    return default if number is None else number
