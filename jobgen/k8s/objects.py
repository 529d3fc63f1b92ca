"""Typed views of a manifest: the object, its roles, their pods and containers. They serve plain and traced data.

A field that is missing or has the wrong type reads as empty: the schema check reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from jobgen.k8s.accelerators import find_device_node, is_device, name_device
from jobgen.k8s.device_claims import CLASS_RESOURCE, CatalogSource, Devices, add_devices, no_catalog
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.pod_sets import list_template_paths
from jobgen.model.data import Node, value_of
from jobgen.model.path import NamedItem, Step
from jobgen.model.quantity import to_milli
from jobgen.spec import kinds
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.spec.replicas import ReplicaLayout, RoleDescription, count_pods, find_restart_policy, find_template, get_at
from jobgen.spec.teams import TeamScope


def count_role_pods(replica_spec: Mapping[str, Node], definition: RoleDescription | None, kind: Kind | None) -> int:
    """Return the declared number of pods of a role, or the operator's default."""
    omitted = definition.omitted if definition else 1
    if kind is None or (definition and definition.at):
        return omitted
    if kind.shape == "one":
        declared = as_integer(replica_spec.get(str(kind.replicas_at[-1])))
        return omitted if declared is None else max(declared, 0)
    return count_pods(replica_spec, kind.replicas, omitted)


def find_definition(
    replica_type: str, replica_spec: Mapping[str, Node], obj: Mapping[str, Node], kind: Kind | None
) -> RoleDescription | None:
    """Return the entry of a role in its kind; None if the kind does not have such a role."""
    # A group of workers may have the name of a role with a place of its own.
    roles = [
        role for role in (kind.roles.values() if kind else ()) if not role.at or get_at(obj, role.at) is replica_spec
    ]
    found = next(
        (role for role in roles if value_of(role.spelling) == replica_type and role.name != kinds.ANY_ROLE), None
    )
    if found is None and kind and kind.requirements.unknown_roles == "started":
        # An operator that starts unknown roles also ignores the case of known ones.
        found = next((role for role in roles if str(value_of(role.spelling)).lower() == replica_type.lower()), None)
    return found or (
        kind.any_role._replace(name=replica_type, spelling=replica_type) if kind and kind.any_role else None
    )


if TYPE_CHECKING:
    from jobgen.k8s.device_claims import PodClaim, SharedDevices
    from jobgen.k8s.team_uses import Use


class Container:
    """A container of a pod, or the main container that a kind without pod templates describes."""

    __slots__ = (
        "_devices",
        "_gpus",
        "_own_devices",
        "_search_text",
        "command_line",
        "data",
        "init",
        "limits",
        "name",
        "pod",
        "requests",
    )

    def __init__(self, data: Mapping[str, Node], pod: Pod, *, init: bool) -> None:
        self.data = data
        self.pod = pod
        self.init = init
        self.name = as_text(data.get("name"))
        self.command_line: list[Node] = [*as_list(data.get("command")), *as_list(data.get("args"))]
        """`command` followed by `args`."""
        resources = as_mapping(data.get("resources"))
        self.limits = as_mapping(resources.get("limits"))
        self.requests = as_mapping(resources.get("requests"))
        self._gpus: int | None = None
        self._devices: Mapping[str, Node] | None = None
        self._own_devices: Mapping[str, Node] | None = None
        self._search_text: str | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that runs beside the main container."""
        return self.init and value_of(self.data.get("restartPolicy")) == "Always"

    @property
    def env(self) -> Iterator[tuple[str, Mapping[str, Node]]]:
        """The entries of `env`, each with the name of its variable."""
        for entry in as_list(self.data.get("env")):
            if isinstance(entry, dict):
                yield as_text(entry.get("name")), entry

    @property
    def search_text(self) -> str:
        """Image, command line and variables as one text, one per line, for a cheap search before a closer look."""
        if self._search_text is None:
            lines = [as_text(self.data.get("image")), *map(as_text, self.command_line)]
            lines += [f"{name}={as_text(entry.get('value'))}" for name, entry in self.env]
            self._search_text = "\n".join(lines)
        return self._search_text

    @property
    def own_devices(self) -> Mapping[str, Node]:
        """The accelerators that the container requests by resource: the limits, or the requests that have no limit."""
        if self._own_devices is None:
            wanted = {**self.requests, **self.limits} if self.requests != self.limits else self.limits
            found = {name: value for name, value in wanted.items() if is_device(name) and to_milli(value)}
            if any(name.startswith(CLASS_RESOURCE) for name in wanted):
                self._add_class_devices(found, wanted)
            self._own_devices = found
        return self._own_devices

    def _add_class_devices(self, found: dict[str, Node], wanted: Mapping[str, Node]) -> None:
        """Add the devices that the container requests by the resources of their classes."""
        catalog = self.pod.manifest.read_catalog()
        for name, value in wanted.items():
            resource = catalog.find_resource(name.removeprefix(CLASS_RESOURCE)) if CLASS_RESOURCE in name else None
            if resource and to_milli(value):
                count = (to_milli(value) or 0) + (to_milli(found.get(resource)) or 0)
                found[resource] = count // 1000 if resource in found else value

    @property
    def claimed_devices(self) -> Devices:
        """The accelerators of the claims that the container uses; other containers may use them, too."""
        total: dict[str, int] = {}
        for use in self._list_claim_uses():
            claim = self.pod.claims.get(as_text(use.get("name")))
            if claim is not None and claim.definition is not None:
                add_devices(total, claim.definition.list_devices(as_text(use.get("request"))))
        return total

    @property
    def devices(self) -> Mapping[str, Node]:
        """The accelerators that the container can use, by resource: its own, and those of its claims."""
        if self._devices is None:
            self._devices = self.own_devices
            if self._list_claim_uses():
                total = {name: (to_milli(value) or 0) // 1000 for name, value in self.own_devices.items()}
                add_devices(total, self.claimed_devices)
                self._devices = dict(total)
        return self._devices

    @property
    def gpus(self) -> int:
        """The number of GPUs. Other accelerators, such as TPUs, count if they are the GPU resource of the cluster."""
        if self._gpus is None:
            self._gpus = self.pod.manifest.count_gpus(self.devices)
        return self._gpus

    @property
    def device_node(self) -> Node:
        """The node with the number of devices or the name of a claim for devices; None if there is none."""
        found = find_device_node(self.limits, self.requests)
        return found if found is not None else next((use.get("name") for use in self._list_claim_uses()), None)

    def _list_claim_uses(self) -> list[Mapping[str, Node]]:
        uses = as_mapping(self.data.get("resources")).get("claims")
        return [use for use in as_list(uses) if isinstance(use, dict)] if uses else []


PodPart = Literal["whole", "base", "patch"]
"""How much of a pod a template has: all of it; what other objects patch, as in a runtime; or only such a patch."""


class Pod:
    """A pod template: that of a role, or one that the kind description finds elsewhere in the object."""

    __slots__ = (
        "_claims",
        "_gpus",
        "containers",
        "init_containers",
        "main_container",
        "manifest",
        "metadata",
        "part",
        "role",
        "spec",
        "template",
    )

    def __init__(
        self, template: Mapping[str, Node], manifest: Manifest, role: Role | None = None, part: PodPart = "whole"
    ) -> None:
        self.template = template
        self.manifest = manifest
        self.role = role
        self.part = part
        self.metadata = as_mapping(template.get("metadata"))
        self.spec = as_mapping(template.get("spec"))
        containers, init = as_list(self.spec.get("containers")), as_list(self.spec.get("initContainers"))
        self.containers = [Container(data, self, init=False) for data in containers if isinstance(data, dict)]
        self.init_containers = [Container(data, self, init=True) for data in init if isinstance(data, dict)]
        self.main_container = _find_main_container(self.containers, manifest.kind)
        """The container that trains: the one with the name that the operator expects, or the first."""
        self._gpus: int | None = None
        self._claims: Mapping[str, PodClaim] | None = None

    @property
    def partial(self) -> bool:
        """Whether another object has the rest of the pod."""
        return self.part != "whole"

    @property
    def claims(self) -> Mapping[str, PodClaim]:
        """The claims for devices, by their names in the pod."""
        if self._claims is None:
            entries = self.spec.get("resourceClaims")
            self._claims = _find_claims(entries, self.manifest) if entries else {}
        return self._claims

    @property
    def gpus(self) -> int:
        """The number of GPUs of one pod, without those of claims that it shares with other pods."""
        if self._gpus is None:
            count = self.manifest.count_gpus
            beside = most = 0
            for container in self.init_containers:
                most = max(most, beside + count(container.own_devices))
                beside += count(container.own_devices) if container.is_sidecar else 0
            most = max(most, beside + sum(count(container.own_devices) for container in self.containers))
            own = (claim.definition for claim in self.claims.values() if not claim.is_shared)
            self._gpus = most + sum(count(claim.list_devices()) for claim in own if claim is not None)
        return self._gpus

    @property
    def devices(self) -> Devices:
        """The accelerators that the containers of one pod can use, by resource."""
        total: dict[str, int] = {}
        for container in (*self.containers, *(each for each in self.init_containers if each.is_sidecar)):
            add_devices(total, {name: (to_milli(value) or 0) // 1000 for name, value in container.own_devices.items()})
        for claim in self.claims.values():
            add_devices(total, claim.definition.list_devices() if claim.definition else {})
        return total

    @property
    def volumes(self) -> Iterator[Mapping[str, Node]]:
        """The volumes of the pod."""
        return (volume for volume in as_list(self.spec.get("volumes")) if isinstance(volume, dict))

    @property
    def mounted_volumes(self) -> set[str]:
        """The names of the volumes that its containers mount, or use as block devices."""
        return {
            as_text(as_mapping(mount).get("name"))
            for container in (*self.containers, *self.init_containers)
            for field in ("volumeMounts", "volumeDevices")
            for mount in as_list(container.data.get(field))
        }

    @property
    def undeclared_volumes(self) -> set[str]:
        """The names of the volumes that its containers mount and that the template does not declare."""
        mounted = self.mounted_volumes
        return mounted - {as_text(volume.get("name")) for volume in self.volumes} if mounted else mounted


def _find_main_container(containers: list[Container], kind: Kind | None) -> Container | None:
    wanted = value_of(kind.container) if kind else ""
    return next(
        (container for container in containers if container.name == wanted), containers[0] if containers else None
    )


class Role:
    """A role of a job: `key` is the node of its name, `definition` its entry in the kind, if there is one."""

    __slots__ = ("count", "definition", "key", "manifest", "name", "pod", "replica_spec", "replica_type")

    def __init__(self, key: Node, replica_spec: Mapping[str, Node], manifest: Manifest) -> None:
        self.key = key
        self.replica_spec = replica_spec
        self.manifest = manifest
        self.replica_type = str(value_of(key))
        self.definition = find_definition(self.replica_type, replica_spec, manifest.object, manifest.kind)
        self.name = self.definition.name if self.definition else self.replica_type.lower()
        """The role's name in jobgen, which is the same for every kind."""
        self.count = count_role_pods(replica_spec, self.definition, manifest.kind)
        """The number of pods: the declared number, or the operator's default."""
        layout = manifest.kind.replicas if manifest.kind else ReplicaLayout()
        part: PodPart = "base" if self.definition and self.definition.completed else "whole"
        self.pod = Pod(as_mapping(find_template(replica_spec, layout)), manifest, self, part)
        """The template of its pods."""

    @property
    def restart_policy(self) -> str:
        """The declared restart policy, or the operator's default."""
        own = self.definition.restart_default if self.definition else ""
        default = self.manifest.kind.restart_default if self.manifest.kind else ""
        return as_text(self.restart_policy_node) or own or default

    @property
    def restart_policy_node(self) -> Node:
        """The declared restart policy, or None."""
        kind = self.manifest.kind
        return find_restart_policy(self.replica_spec, kind.replicas) if kind else None

    @property
    def gpus(self) -> int:
        """The number of GPUs of all its pods, without those of claims that they share."""
        return self.count * self.pod.gpus


class Manifest:
    """An object, with its kind and the cluster of its environment."""

    __slots__ = (
        "_pods",
        "_roles",
        "_uses",
        "annotations",
        "cluster",
        "kind",
        "kind_name",
        "labels",
        "metadata",
        "object",
        "read_catalog",
        "spec",
        "team",
    )

    def __init__(
        self,
        obj: Mapping[str, Node],
        kind: Kind | None,
        cluster: Cluster,
        read_catalog: CatalogSource = no_catalog,
        team: TeamScope | None = None,
    ) -> None:
        self.object = obj
        self.kind = kind
        self.cluster = cluster
        self.read_catalog = read_catalog
        """Reads what is known of the cluster's devices."""
        self.team = team
        """What the team that owns its file may use; None if no team does."""
        self.kind_name = as_text(obj.get("kind"))
        """The value of `kind`, also for kinds that jobgen does not know."""
        self.metadata = as_mapping(obj.get("metadata"))
        self.spec = as_mapping(obj.get("spec"))
        self.labels = as_mapping(self.metadata.get("labels"))
        self.annotations = as_mapping(self.metadata.get("annotations"))
        self._roles: list[Role] | None = None
        self._pods: list[Pod] | None = None
        self._uses: tuple[Use, ...] | None = None

    @property
    def roles(self) -> list[Role]:
        """The roles, in the order of the manifest."""
        if self._roles is None:
            self._roles = list(_find_roles(self)) if self.kind else []
        return self._roles

    @property
    def pods(self) -> list[Pod]:
        """All pod templates of the object: those of its roles, and those that are elsewhere in it."""
        if self._pods is None:
            self._pods = [role.pod for role in self.roles]
            self._pods += _find_other_pods(self, self.kind) if self.kind else _find_pods(self)
        return self._pods

    @property
    def name(self) -> str:
        """The name; empty if the server generates one."""
        return as_text(self.metadata.get("name"))

    @property
    def group(self) -> str:
        """The API group; empty for the core group of Kubernetes."""
        return as_text(self.object.get("apiVersion")).rpartition("/")[0]

    @property
    def runs_on_every_node(self) -> bool:
        """Whether it is a DaemonSet: one pod of it runs on each node, and usually works for that node."""
        return self.kind_name == "DaemonSet" and self.group == "apps"

    @property
    def namespace(self) -> str:
        """The namespace; empty if none is declared."""
        return as_text(self.metadata.get("namespace"))

    @property
    def uses(self) -> tuple[Use, ...]:
        """The names that it uses and that a team may own."""
        if self._uses is None:
            # Imported late: most repositories have no teams.
            from jobgen.k8s.team_uses import find_uses

            self._uses = tuple(find_uses(self.object))
        return self._uses

    @property
    def run_policy(self) -> Mapping[str, Node]:
        """`spec.runPolicy`."""
        return as_mapping(self.spec.get("runPolicy"))

    @property
    def operator_version(self) -> str:
        """The declared version of the operator; empty if none is declared, which means the newest that has the kind."""
        return self.cluster.find_version(self.kind.operator) if self.kind else ""

    def find_role(self, name: str) -> Role | None:
        """Return the role with this name in jobgen, if the job has it."""
        return next((role for role in self.roles if role.definition and role.definition.name == name), None)

    @property
    def gpus(self) -> int:
        """The number of GPUs of the whole job."""
        return sum(role.gpus for role in self.roles) + sum(shared.gpus for shared in self.shared_devices)

    @property
    def claims_devices(self) -> bool:
        """Whether what its pods request depends on other objects: on claims, templates or classes."""
        return any(
            pod.spec.get("resourceClaims")
            or any(
                name.startswith(CLASS_RESOURCE) for each in pod.containers for name in (*each.limits, *each.requests)
            )
            for pod in self.pods
        )

    @property
    def shared_devices(self) -> tuple[SharedDevices, ...]:
        """The GPUs of claims that the pods of the job share, with each other or with those of other jobs."""
        return self.list_shared_devices(role.pod for role in self.roles if role.count)

    def list_shared_devices(self, pods: Iterable[Pod]) -> tuple[SharedDevices, ...]:
        """Return the GPUs of claims that some of its pods share."""
        claims = [claim for pod in pods for claim in pod.claims.values() if claim.is_shared]
        if not claims:
            return ()
        from jobgen.k8s.device_claims import SharedDevices

        counts = {each.key: self.count_gpus(each.definition.list_devices()) for each in claims if each.definition}
        return tuple(SharedDevices(key, gpus) for key, gpus in counts.items() if gpus)

    def count_gpus(self, devices: Mapping[str, Node]) -> int:
        """Return the number of GPUs among devices."""
        own = self.cluster.gpu_resource
        counted = [value for name, value in devices.items() if name == own or name_device(name) == "GPU"]
        return sum((to_milli(value) or 0) // 1000 for value in counted)

    @property
    def has_devices(self) -> bool:
        """Whether the job requests accelerators of any kind."""
        return any(
            container.devices
            for role in self.roles
            if role.count
            for container in (*role.pod.containers, *role.pod.init_containers)
        ) or any(role.count and any(role.pod.devices.values()) for role in self.roles if role.pod.claims)

    @property
    def pod_count(self) -> int:
        """The number of pods of the whole job."""
        return sum(role.count for role in self.roles)


def _find_roles(manifest: Manifest) -> Iterator[Role]:
    kind = manifest.kind
    assert kind is not None
    if kind.shape == "one":
        yield from _build_single_role(manifest, kind)
        return
    yield from (Role(item.key, item.data, manifest) for item in kind.list_items(manifest.object))


def _build_single_role(manifest: Manifest, kind: Kind) -> Iterator[Role]:
    """Build the role of a kind without pod templates; its pod has only the fields of the main container."""
    assert kind.template is not None
    *steps, _ = map(str, kind.replicas_at)
    role = Role(kind.container, as_mapping(get_path(manifest.object, *steps)), manifest)
    container: dict[str, Node] = {}
    for field, path in kind.template.container.items():
        found = get_path(manifest.object, *map(str, path))
        if found is not None:
            container[field] = found
    role.pod = Pod({"spec": {"containers": [container]}}, manifest, role, "patch")
    yield role


def _find_pods(manifest: Manifest) -> Iterator[Pod]:
    """Yield the pod templates of an object whose kind has no description."""
    for path in list_template_paths(manifest.group, manifest.kind_name):
        for template in find_nodes(manifest.object, path):
            if isinstance(template, dict):
                yield Pod(template, manifest)


def _find_other_pods(manifest: Manifest, kind: Kind) -> Iterator[Pod]:
    """Yield the pod templates that are not those of roles."""
    seen = {id(role.pod.template) for role in manifest.roles}
    for template in (found for path in kind.pods for found in find_nodes(manifest.object, path)):
        if isinstance(template, dict) and id(template) not in seen:
            seen.add(id(template))
            yield Pod(template, manifest, part="base" if kind.completed_by else "whole")
    for shape in kind.template.shapes if kind.template else ():
        for patch in find_nodes(manifest.object, (*shape.at, "*")):
            # Each patch names the pods that it changes; the description names only those that jobgen renders.
            spec, metadata = (_every_item(path) for path in (shape.spec, shape.metadata or ()))
            for found in find_nodes(patch, spec):
                if isinstance(found, dict) and id(found) not in seen:
                    seen.add(id(found))
                    labels = next(find_nodes(patch, metadata), None) if shape.metadata else None
                    yield Pod({"metadata": labels, "spec": found}, manifest, part="patch")


def _every_item(path: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple("*" if isinstance(step, NamedItem) else step for step in path)


def _find_claims(entries: Node, manifest: Manifest) -> Mapping[str, PodClaim]:
    # Imported late: few pods have claims.
    from jobgen.k8s.device_claims import find_claims

    return dict(find_claims(entries, manifest.namespace, manifest.read_catalog))
