"""Typed views of a manifest: the object, its roles, their pods and containers. They serve plain and traced data.

A field that is missing or has the wrong type reads as empty: the schema check reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Literal

from jobgen.k8s.devices import (
    CLASS_RESOURCE,
    CatalogSource,
    Devices,
    PodClaim,
    SharedDevices,
    add_devices,
    find_claims,
    is_device,
    name_device,
    no_catalog,
)
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes, get_path, list_mappings
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.cached_property import cached_property
from jobgen.model.data import Plain, text_of
from jobgen.model.finding import SetByPatch
from jobgen.model.path import NamedItem
from jobgen.model.place import At, Gathered, Place, find_at
from jobgen.model.quantity import to_milli
from jobgen.spec import kinds
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.spec.replicas import ReplicaLayout, RoleDescription, count_pods, find_restart_policy, find_template, get_at
from jobgen.spec.teams import TeamScope

ConfigSource = Callable[..., Mapping[str, Plain] | None]
"""Returns the data of a ConfigMap, or the keys of a Secret, by its namespace, name and kind; None if no file has it.

With `is_traced`, it has locations, which otherwise it has if the object has them. A value that is not known is null: a
binary one, or one of a Secret.
"""


def no_configs(namespace: str, name: str, kind: str = "ConfigMap", *, is_traced: bool = False) -> None:
    """Find nothing."""


def count_role_pods(replica_spec: Mapping[str, Plain], definition: RoleDescription | None, kind: Kind | None) -> int:
    """Return the declared number of pods of a role, or the operator's default."""
    omitted = definition.omitted if definition else 1
    if kind is None or (definition and definition.at):
        return omitted
    if kind.shape == "one":
        declared = as_integer(replica_spec.get(str(kind.replicas_at[-1])))
        return omitted if declared is None else max(declared, 0)
    return count_pods(replica_spec, kind.replicas, omitted)


def find_definition(
    replica_type: str, replica_spec: Mapping[str, Plain], obj: Mapping[str, Plain], kind: Kind | None
) -> RoleDescription | None:
    """Return the entry of a role in its kind; None if the kind does not have such a role."""
    if kind is None:
        return None
    # A group of workers may have the name of a role with a place of its own.
    roles = [role for role in kind.roles.values() if not role.at or get_at(obj, role.at) is replica_spec]
    for role in roles:
        if text_of(role.spelling) == replica_type and role.name != kinds.ANY_ROLE:
            return role
    if kind.requirements.unknown_roles == "started":
        # An operator that starts unknown roles also ignores the case of known ones.
        for role in roles:
            if text_of(role.spelling).lower() == replica_type.lower():
                return role
    return kind.any_role._replace(name=replica_type, spelling=replica_type) if kind.any_role else None


if TYPE_CHECKING:
    from jobgen.k8s.team_uses import Use


class Container:
    """A container of a pod, or the main container that a kind without pod templates describes."""

    def __init__(self, data: Mapping[str, Plain], pod: Pod, *, init: bool) -> None:
        self.data = data
        self.pod = pod
        self.init = init
        self.is_sidecar = init and data.get("restartPolicy") == "Always"
        """True if it is an init container that runs beside the main container."""
        self.name = as_text(data.get("name"))
        self.image = as_text(data.get("image"))
        self.command = as_list(data.get("command"))
        self.command_line: list[Plain] = [*self.command, *as_list(data.get("args"))]
        self.resources = as_mapping(data.get("resources"))
        self.limits = as_mapping(self.resources.get("limits"))
        self.requests = as_mapping(self.resources.get("requests"))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The texts of its command line."""
        return tuple(map(as_text, self.command_line))

    @cached_property
    def env(self) -> tuple[tuple[str, Mapping[str, Plain]], ...]:
        """The entries of `env`, each with the name of its variable."""
        return tuple([(as_text(entry.get("name")), entry) for entry in list_mappings(self.data.get("env"))])

    @cached_property
    def variables(self) -> Mapping[str, Mapping[str, Plain]]:
        """The entries of `env` by the names of their variables; of two with the same name, the last one wins."""
        return dict(self.env)

    @cached_property
    def search_text(self) -> str:
        """Image, command line and variables as one text, one per line, for a cheap search before a closer look."""
        variables = [f"{name}={as_text(entry.get('value'))}" for name, entry in self.env]
        return "\n".join((self.image, *self.words, *variables))

    @cached_property
    def volume_mounts(self) -> list[dict[str, Plain]]:
        """The entries of `volumeMounts`."""
        return list_mappings(self.data.get("volumeMounts"))

    @cached_property
    def own_devices(self) -> Mapping[str, Plain]:
        """The accelerators that the container requests by resource: the limits, or the requests that have no limit."""
        wanted = {**self.requests, **self.limits} if self.requests != self.limits else self.limits
        # Every device has a name with a domain.
        named = [(name, value) for name, value in wanted.items() if "/" in name and to_milli(value)]
        found = {name: value for name, value in named if is_device(name)}
        # Devices may also be requested by the resources of their classes.
        for name, value in named:
            if name.startswith(CLASS_RESOURCE):
                resource = self.pod.manifest.read_catalog().find_resource(name.removeprefix(CLASS_RESOURCE))
                if resource:
                    count = (to_milli(value) or 0) + (to_milli(found.get(resource)) or 0)
                    found[resource] = count // 1000 if resource in found else value
        return found

    @cached_property
    def devices(self) -> Mapping[str, Plain]:
        """The accelerators that the container can use, by resource: its own, and those of its claims."""
        uses = self._list_claim_uses() if "claims" in self.resources else ()
        if not uses:
            return self.own_devices
        total = {name: (to_milli(value) or 0) // 1000 for name, value in self.own_devices.items()}
        for use in uses:
            # Other containers may use the same claim.
            claim = self.pod.claims.get(as_text(use.get("name")))
            if claim is not None and claim.definition is not None:
                add_devices(total, claim.definition.list_devices(as_text(use.get("request"))))
        return dict(total)

    @cached_property
    def own_gpus(self) -> int:
        """The number of GPUs among its own devices."""
        return self.pod.manifest.count_gpus(self.own_devices)

    @cached_property
    def gpus(self) -> int:
        """The number of GPUs. Other accelerators, such as TPUs, count if they are the GPU resource of the cluster."""
        is_own = self.devices is self.own_devices
        return self.own_gpus if is_own else self.pod.manifest.count_gpus(self.devices)

    def word_place(self, index: int) -> At:
        """Return the place of a word of its command line."""
        own = len(self.command)
        return At(self.command, index) if index < own else At(as_list(self.data.get("args")), index - own)

    @property
    def command_places(self) -> Iterator[At]:
        """The places of the words of its command line."""
        return map(self.word_place, range(len(self.command_line)))

    @property
    def value_places(self) -> Iterator[At]:
        """The places of the words of its command line, and of the values of its variables."""
        values = (At(entry, "value") for _, entry in self.env if "value" in entry)
        return chain(self.command_places, values)

    @property
    def device_place(self) -> At | None:
        """The place of the number of devices or of the name of a claim for devices; None if there is none."""
        wanted = ((holder, name) for holder in (self.limits, self.requests) for name in holder)
        counts = (At(holder, name) for holder, name in wanted if is_device(str(name)) and to_milli(holder[name]))
        return next(chain(counts, (At(use, "name") for use in self._list_claim_uses() if "name" in use)), None)

    def _list_claim_uses(self) -> list[dict[str, Plain]]:
        return list_mappings(self.resources.get("claims"))


PodPart = Literal["whole", "base", "patch"]
"""How much of a pod a template has: all of it; what other objects patch, as in a runtime; or only such a patch."""


class Pod:
    """A pod template: that of a role, or one that the kind description finds elsewhere in the object."""

    def __init__(
        self, template: Mapping[str, Plain], manifest: Manifest, role: Role | None = None, part: PodPart = "whole"
    ) -> None:
        self.template = template
        self.manifest = manifest
        self.role = role
        self.part = part
        self.partial = part != "whole"
        """True if another object has the rest of the pod."""
        self.metadata = as_mapping(template.get("metadata"))
        self.spec = as_mapping(template.get("spec"))
        containers, init = list_mappings(self.spec.get("containers")), list_mappings(self.spec.get("initContainers"))
        self.containers = [Container(data, self, init=False) for data in containers]
        self.init_containers = [Container(data, self, init=True) for data in init]
        self.all_containers = [*self.containers, *self.init_containers]
        self.main_container = self.containers[0] if self.containers else None
        """The container that trains: the one with the name that the operator expects, or the first."""
        wanted = text_of(manifest.kind.container) if manifest.kind else ""
        for container in self.containers:
            if container.name == wanted:
                self.main_container = container
                break

    @cached_property
    def claims(self) -> Mapping[str, PodClaim]:
        """The claims for devices, by their names in the pod."""
        entries = self.spec.get("resourceClaims")
        return dict(find_claims(entries, self.manifest.namespace, self.manifest.read_catalog)) if entries else {}

    @cached_property
    def gpus(self) -> int:
        """The number of GPUs of one pod, without those of claims that it shares with other pods."""
        beside = most = together = 0
        for container in self.init_containers:
            most = max(most, beside + container.own_gpus)
            beside += container.own_gpus if container.is_sidecar else 0
        for container in self.containers:
            together += container.own_gpus
        most = max(most, beside + together)
        for claim in self.claims.values() if "resourceClaims" in self.spec else ():
            if claim.definition is not None and not claim.is_shared:
                most += self.manifest.count_gpus(claim.definition.list_devices())
        return most

    @cached_property
    def devices(self) -> Devices:
        """The accelerators that the containers of one pod can use, by resource."""
        total: dict[str, int] = {}
        for container in self.all_containers:
            if container.own_devices and (container.is_sidecar or not container.init):
                own = container.own_devices.items()
                add_devices(total, {name: (to_milli(value) or 0) // 1000 for name, value in own})
        for claim in self.claims.values() if "resourceClaims" in self.spec else ():
            add_devices(total, claim.definition.list_devices() if claim.definition else {})
        return total

    @cached_property
    def volumes(self) -> list[dict[str, Plain]]:
        """The volumes of the pod."""
        return list_mappings(self.spec.get("volumes"))

    @cached_property
    def mounted_volumes(self) -> frozenset[str]:
        """The names of the volumes that its containers mount, or use as block devices."""
        names: list[Plain] = []
        for container in self.all_containers:
            names += [mount.get("name") for mount in container.volume_mounts]
            if "volumeDevices" in container.data:
                names += [device.get("name") for device in list_mappings(container.data["volumeDevices"])]
        return frozenset(map(as_text, names))

    @property
    def undeclared_volumes(self) -> frozenset[str]:
        """The names of the volumes that its containers mount and that the template does not declare."""
        mounted = self.mounted_volumes
        return mounted - {as_text(volume.get("name")) for volume in self.volumes} if mounted else mounted


class Role:
    """A role of a job: `key` is the node of its name, `definition` its entry in the kind, if there is one."""

    def __init__(self, key: Plain, replica_spec: Mapping[str, Plain], manifest: Manifest) -> None:
        self.key = key
        self.replica_spec = replica_spec
        self.manifest = manifest
        self.replica_type = text_of(key) or str(key)
        self.definition = find_definition(self.replica_type, replica_spec, manifest.object, manifest.kind)
        self.name = self.definition.name if self.definition else self.replica_type.lower()
        """The role's name in jobgen, which is the same for every kind."""
        self.count = count_role_pods(replica_spec, self.definition, manifest.kind)
        layout = manifest.kind.replicas if manifest.kind else ReplicaLayout()
        part: PodPart = "base" if self.definition and self.definition.completed else "whole"
        self.template: Plain = find_template(replica_spec, layout)
        """The pod template as it is written, also if it is none."""
        self.pod = Pod(as_mapping(self.template), manifest, self, part)

    @property
    def title(self) -> str:
        """The role as messages name it; the object of a kind with one role has no name for it."""
        kind = self.manifest.kind
        return "the pod" if kind and kind.replicas.shape in ("item", "one") else f"`{self.replica_type}`"

    @property
    def compared_count(self) -> tuple[tuple[At, str], ...]:
        """The numbers that its pods are counted by, for findings that compare them; what a patch sets is shown."""
        kind = self.manifest.kind
        layout = kind.replicas if kind else ReplicaLayout()
        paths = (kind.replicas_at[-1:],) if kind and kind.shape == "one" else (*layout.counts, layout.times)
        places = (find_at(self.replica_spec, *map(str, path)) for path in paths if path)
        return tuple(
            (place, SetByPatch(f"{self.replica_type} has {number}"))
            for place in places
            if place is not None and (number := as_integer(place.node)) is not None
        )

    @property
    def place(self) -> Place:
        """The place of its name, or of what is described where the kind has no name for it."""
        obj, kind = self.manifest.object, self.manifest.kind
        if kind is None or kind.shape == "one":
            steps = [*map(str, kind.replicas_at)][:-1] if kind else []
            return (find_at(obj, *steps, is_key=True) if steps else None) or At(obj, "kind")
        for item in kind.list_items(obj):
            if item.data is self.replica_spec and item.key == self.key:
                *before, last = item.path
                if type(last) is int:
                    return At(item.data, kind.replicas.key) if kind.replicas.key in item.data else item.data
                return find_at(obj, *before, last, is_key=True) or item.data
        return At(obj, "kind")

    @property
    def restart_policy(self) -> str:
        """The declared restart policy, or the operator's default."""
        own = self.definition.restart_default if self.definition else ""
        default = self.manifest.kind.restart_default if self.manifest.kind else ""
        return as_text(self.restart_policy_node) or own or default

    @cached_property
    def restart_policy_node(self) -> Plain:
        """The declared restart policy, or None."""
        kind = self.manifest.kind
        return find_restart_policy(self.replica_spec, kind.replicas) if kind else None

    @property
    def restart_policy_place(self) -> At | None:
        """The place of the declared restart policy, or None."""
        kind = self.manifest.kind
        return find_at(self.replica_spec, *map(str, kind.replicas.restart_policy)) if kind else None

    @property
    def gpus(self) -> int:
        """The number of GPUs of all its pods, without those of claims that they share."""
        return self.count * self.pod.gpus


class Manifest:
    """An object, with its kind and the cluster of its environment."""

    def __init__(
        self,
        obj: Mapping[str, Plain],
        kind: Kind | None,
        cluster: Cluster,
        read_catalog: CatalogSource = no_catalog,
        team: TeamScope | None = None,
        find_config: ConfigSource = no_configs,
    ) -> None:
        self.object = obj
        self.kind = kind
        self.cluster = cluster
        self.read_catalog = read_catalog
        """Reads what is known of the cluster's devices."""
        self.team = team
        """What the team that owns its file may use; None if no team does."""
        self.find_config = find_config
        """Reads the ConfigMaps of the repository."""
        """True if its values have no locations."""
        self.kind_name = as_text(obj.get("kind"))
        """The value of `kind`, also for kinds that jobgen does not know."""
        self.group = as_text(obj.get("apiVersion")).rpartition("/")[0]
        """The API group; empty for the core group of Kubernetes."""
        self.metadata = as_mapping(obj.get("metadata"))
        self.name = as_text(self.metadata.get("name"))
        """The name; empty if the server generates one."""
        self.namespace = as_text(self.metadata.get("namespace"))
        self.spec = as_mapping(obj.get("spec"))
        self.run_policy = as_mapping(self.spec.get("runPolicy"))
        self.labels = as_mapping(self.metadata.get("labels"))
        self.annotations = as_mapping(self.metadata.get("annotations"))

    @property
    def name_place(self) -> At | None:
        """The place of its name, or else of the beginning of one that the server generates; None without one."""
        return find_at(self.object, "metadata", "name") or find_at(self.object, "metadata", "generateName")

    @cached_property
    def text(self) -> str:
        """The object as one text, for a cheap search before a closer look."""
        return repr(self.object)

    @cached_property
    def roles(self) -> list[Role]:
        """The roles, in the order of the manifest."""
        if self.kind is None:
            return []
        if self.kind.shape == "one":
            return [_build_single_role(self, self.kind)]
        return [Role(item.key, item.data, self) for item in self.kind.list_items(self.object)]

    @cached_property
    def pods(self) -> list[Pod]:
        """All pod templates of the object: those of its roles, and those that are elsewhere in it."""
        if self.kind is not None:
            return [*(role.pod for role in self.roles), *_find_other_pods(self, self.kind)]
        paths = list_template_paths(self.group, self.kind_name)
        templates = (template for path in paths for template in find_nodes(self.object, path))
        return [Pod(template, self) for template in templates if isinstance(template, dict)]

    @cached_property
    def judged(self) -> Manifest:
        """The object without a kind description that only the revision that is judged has."""
        if self.kind is None or not self.kind.is_added:
            return self
        return Manifest(self.object, None, self.cluster, self.read_catalog, self.team, self.find_config)

    @property
    def runs_on_every_node(self) -> bool:
        """Return True if it is a DaemonSet: one pod of it runs on each node, and usually works for that node."""
        return self.kind_name == "DaemonSet" and self.group == "apps"

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The names that it uses and that a team may own."""
        # Imported late: most repositories have no teams.
        from jobgen.k8s.team_uses import find_uses

        return tuple(find_uses(self.object))

    @cached_property
    def operator_version(self) -> str:
        """The declared version of the operator; empty if none is declared, which means the newest that has the kind."""
        return self.cluster.find_version(self.kind.operator) if self.kind else ""

    def find_role(self, name: str) -> Role | None:
        """Return the role with this name in jobgen, if the job has it."""
        for role in self.roles:
            if role.definition and role.definition.name == name:
                return role
        return None

    @property
    def gpus(self) -> int:
        """The number of GPUs of the whole job."""
        return sum(role.gpus for role in self.roles) + sum(shared.gpus for shared in self.shared_devices)

    @property
    def claims_devices(self) -> bool:
        """Return True if what its pods request depends on other objects: on claims, templates or classes."""
        names = (name for pod in self.pods for each in pod.containers for name in (*each.limits, *each.requests))
        has_claims = any(pod.spec.get("resourceClaims") for pod in self.pods)
        return has_claims or any(name.startswith(CLASS_RESOURCE) for name in names)

    @property
    def shared_devices(self) -> tuple[SharedDevices, ...]:
        """The GPUs of claims that the pods of the job share, with each other or with those of other jobs."""
        return self.list_shared_devices(role.pod for role in self.roles if role.count)

    def list_shared_devices(self, pods: Iterable[Pod]) -> tuple[SharedDevices, ...]:
        """Return the GPUs of claims that some of its pods share."""
        claims = [claim for pod in pods for claim in pod.claims.values() if claim.is_shared]
        counts = {each.key: self.count_gpus(each.definition.list_devices()) for each in claims if each.definition}
        return tuple(SharedDevices(key, gpus) for key, gpus in counts.items() if gpus)

    def count_gpus(self, devices: Mapping[str, Plain]) -> int:
        """Return the number of GPUs among devices."""
        total = 0
        for name, value in devices.items() if devices else ():
            if name == self.cluster.gpu_resource or name_device(name) == "GPU":
                total += (to_milli(value) or 0) // 1000
        return total

    @property
    def has_devices(self) -> bool:
        """Return True if the job requests accelerators of any kind."""
        pods = [role.pod for role in self.roles if role.count]
        for pod in pods:
            for container in pod.all_containers:
                if container.devices:
                    return True
        return any(any(pod.devices.values()) for pod in pods if "resourceClaims" in pod.spec)

    @property
    def pod_count(self) -> int:
        """The number of pods of the whole job."""
        return sum(role.count for role in self.roles)


def replace_object(manifest: Manifest, obj: Mapping[str, Plain]) -> Manifest:
    """Return a manifest with the values of another object of its kind."""
    return Manifest(obj, manifest.kind, manifest.cluster, manifest.read_catalog, manifest.team, manifest.find_config)


def _build_single_role(manifest: Manifest, kind: Kind) -> Role:
    """Build the role of a kind without pod templates; its pod has only the fields of the main container."""
    assert kind.template is not None
    *steps, _ = map(str, kind.replicas_at)
    role = Role(text_of(kind.container), as_mapping(get_path(manifest.object, *steps)), manifest)
    found = {field: find_at(manifest.object, *map(str, path)) for field, path in kind.template.container.items()}
    places = {field: place for field, place in found.items() if place is not None and place.node is not None}
    container = Gathered({field: place.node for field, place in places.items()}, places)
    role.pod = Pod({"spec": {"containers": [container]}}, manifest, role, "patch")
    return role


def _find_other_pods(manifest: Manifest, kind: Kind) -> Iterator[Pod]:
    seen = {id(role.pod.template) for role in manifest.roles}
    # A description of a repository cannot hide the pods of a kind that jobgen knows.
    paths = (*kind.pods, *list_template_paths(manifest.group, manifest.kind_name))
    for template in (found for path in paths for found in find_nodes(manifest.object, path)):
        if isinstance(template, dict) and id(template) not in seen:
            seen.add(id(template))
            yield Pod(template, manifest, part="base" if kind.completed_by else "whole")
    for shape in kind.template.shapes if kind.template else ():
        for patch in find_nodes(manifest.object, (*shape.at, "*")):
            # Each patch names the pods that it changes; the description names only those that jobgen renders.
            paths = (shape.spec, shape.metadata or ())
            spec, metadata = (["*" if isinstance(step, NamedItem) else step for step in path] for path in paths)
            for found in find_nodes(patch, spec):
                if isinstance(found, dict) and id(found) not in seen:
                    seen.add(id(found))
                    labels = next(find_nodes(patch, metadata), None) if shape.metadata else None
                    yield Pod({"metadata": labels, "spec": found}, manifest, part="patch")
