"""A PyTorchJob as training-operator reads it: its replicas with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.migrate.draft import get_at
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.numbers import parse_digits
from jobgen.spec.kinds import VersionRange

CONTAINER = "pytorch"
PORT = {"name": "pytorchjob-port", "containerPort": 23456}
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed")
_PROCESSES = ("--nproc_per_node", "--nproc-per-node")
_POLICY = "OnFailure"
_ONE_SIDE = VersionRange(until="2.1.0")


class TorchReplica(NamedTuple):
    """The replicas of one role."""

    number: int
    policy: str
    template: Fields

    @property
    def main(self) -> Fields:
        """The main container."""
        containers = self.containers
        return next((each for each in containers if each.get("name") == CONTAINER), containers[0] if containers else {})

    @property
    def containers(self) -> list[Fields]:
        """All containers that are maps."""
        found = get_at(self.template, ("spec", "containers"))
        return [each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict)]

    @property
    def port(self) -> int:
        """The port at which the operator lets the replicas meet."""
        return next(
            (each["containerPort"] for each in list_ports(self.main) if each.get("name") == PORT["name"]), 23456
        )


class TorchJob(NamedTuple):
    """A PyTorchJob with the defaults of its operator."""

    master: TorchReplica | None
    worker: TorchReplica | None
    elastic: Fields | None
    processes: str
    run_policy: Fields
    split: bool = False
    """Whether master and workers are jobs of their own in the runtime."""
    torch: bool = True
    """Whether the policy `torch` of Trainer may be used, if it gives the nodes the same variables."""
    version: str = ""
    """The version of Trainer."""

    @property
    def main(self) -> TorchReplica:
        """The replica that has rank 0."""
        found = self.master or self.worker
        assert found is not None, "checked by read_torch_job"
        return found

    @property
    def nodes(self) -> int:
        """The number of all replicas."""
        return sum(each.number for each in (self.master, self.worker) if each)

    @property
    def roles_differ(self) -> bool:
        """Whether master and workers have different pods."""
        one, other = self.master, self.worker
        return one is not None and other is not None and one[1:] != other[1:]

    @property
    def world_size(self) -> int:
        """The number of processes, as far as the operator knows it."""
        return self.nodes * (1 if (found := parse_digits(self.processes)) is None else found)

    @property
    def node_range(self) -> str:
        """The number of nodes that torchrun waits for."""
        if self.elastic is None:
            return str(self.nodes)
        least, most = (self.elastic.get(name) for name in ("minReplicas", "maxReplicas"))
        workers = self.worker.number if self.worker else 0
        return f"{least or most or workers}:{most or least or workers}"


def read_torch_job(job: Mapping[str, Any]) -> TorchJob | str:
    """Read a PyTorchJob; a text says why that is impossible."""
    replicas = get_at(job, ("spec", "pytorchReplicaSpecs"))
    found = {name: _read_replica(value) for name, value in (replicas if isinstance(replicas, dict) else {}).items()}
    roles = {name.lower(): each for name, each in found.items()}
    if not roles or set(roles) - {"master", "worker"} or None in roles.values():
        return "it has no replicas `Master` or `Worker` with a number and a pod template of named containers"
    elastic = get_at(job, ("spec", "elasticPolicy"))
    if isinstance(elastic, dict) and not all(isinstance(each, dict) for each in _as_list(elastic.get("rdzvConf"))):
        return "its `elasticPolicy.rdzvConf` is not a list of maps"
    own = get_at(job, ("spec", "nprocPerNode"))
    old = elastic.get("nProcPerNode") if isinstance(elastic, dict) else None
    policy = get_at(job, ("spec", "runPolicy"))
    return TorchJob(
        roles.get("master"),
        roles.get("worker"),
        elastic if isinstance(elastic, dict) else None,
        str(old if old is not None else own if own is not None else "auto"),
        policy if isinstance(policy, dict) else {},
    )


def _read_replica(value: Any) -> TorchReplica | None:
    count = value.get("replicas") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(1 if count is None else count, int):
        return None
    template = value.get("template")
    containers = get_at(template, ("spec", "containers"))
    if not isinstance(containers, list) or not all(map(_is_readable, containers)):
        return None
    replica = TorchReplica(1 if count is None else count, value.get("restartPolicy") or _POLICY, template or {})
    return replica if isinstance(template, dict) and replica.containers else None


def _is_readable(container: Any) -> bool:
    """Whether a container has a name, and its variables, ports and words are lists of what they must be."""
    if not isinstance(container, dict) or not isinstance(container.get("name"), str):
        return False
    items = [each for key in ("env", "ports") for each in _as_list(container.get(key))]
    return all(isinstance(each, dict) for each in items) and all(
        isinstance(word, str) for key in ("command", "args") for word in _as_list(container.get(key))
    )


def _as_list(value: Any) -> list[Any]:
    """A list; a value that is none is an item that no list has."""
    return value if isinstance(value, list) else [] if value is None else [None]


def list_ports(container: Fields) -> list[Fields]:
    """The ports of a container that have a number."""
    ports = container.get("ports")
    found = [each for each in (ports if isinstance(ports, list) else ()) if isinstance(each, dict)]
    return [each for each in found if isinstance(each.get("containerPort"), int)]


def starts_processes(container: Fields) -> bool:
    """Whether a container may start torchrun without saying how many processes; unknown commands may."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    if any(word.startswith(_PROCESSES) for word in words):
        return False
    first = words[0].rpartition("/")[2] if container.get("command") and words else ""
    is_script = first.startswith("python") and not any(name in word for word in words for name in _LAUNCHERS)
    return not is_script


def is_torchrun(container: Fields) -> bool:
    """Whether a container runs torchrun itself, which sets the variables of its processes, whatever it got."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    first = words[0].rpartition("/")[2] if container.get("command") and words else ""
    starts = first == "torchrun" or (first.startswith("python") and words[1:3] == ["-m", "torch.distributed.run"])
    return starts and not any("WORLD_SIZE" in word for word in words)


def states_all_resources(container: Fields, version: str) -> bool:
    """Whether Trainer takes the number of processes of a job; 2.0 takes 1 if it has limits or requests alone."""
    resources = container.get("resources")
    sides = [
        key for key in ("limits", "requests") if isinstance(resources, dict) and isinstance(resources.get(key), dict)
    ]
    return not version or not _ONE_SIDE.contains(version) or len(sides) != 1


def requests_gpus(container: Fields, version: str) -> bool:
    """Whether Trainer finds GPUs in the resources of a container; 2.0 counts CPUs if one side has none."""
    resources = container.get("resources")
    sides = [resources.get(side) for side in ("limits", "requests")] if isinstance(resources, dict) else []
    found = [any("gpu" in str(name).lower() for name in side) for side in sides if isinstance(side, dict)]
    return (len(found) == len(sides) and all(found)) if _ONE_SIDE.contains(version) and version else any(found)
