"""Names, versions and devices of images."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.devices import format_devices
from jobgen.k8s.images import (
    MUTABLE_TAGS,
    ImageName,
    find_gpu_word,
    find_image_error,
    is_go_package,
    is_unresolved,
    lower_repository,
    parse_image_name,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence


@rule("container", ERROR, fields=("image",))
def malformed_image(container: Container) -> Iterator[Violation]:
    """An image name that no container runtime accepts.

    The API server does not check the name, but the kubelet does: the pod stays in `InvalidImageName` and never starts.
    A placeholder such as `${IMAGE}` is only a warning unless Argo CD applies the job, because something can replace it
    first. A Go package, such as `ko://example.com/cmd`, is not reported: ko replaces it.

    Write `registry/repository:tag` or `registry/repository@digest`, with the repository in lower case.

    When to turn it off: never for what a kubelet pulls. A placeholder that your pipeline fills in is better
    declared as a variable of a template that is excluded from the lint.
    """
    image = container.image
    why = find_image_error(image) if image else ""
    # `image-name-whitespace` reports surrounding whitespace.
    if not why or image != image.strip() or is_go_package(image):
        return
    gitops = container.pod.manifest.cluster.gitops
    if "$" in image and gitops != "argocd":
        if gitops != "flux":
            message = Sentence(
                "`{}` contains a placeholder; no image can be pulled unless something replaces it first", image
            )
            yield Violation(At(container.data, "image"), message, severity=WARNING)
        return
    message = Sentence("`{}` is not a valid image name: {}", image, why)
    scheme, separator, rest = image.partition("://")
    hint = f"; remove `{scheme}{separator}`" if separator else ""
    parts = image.split()
    # A space may stand for the colon before a tag.
    is_tag = len(parts) == 2 and parts[1].lstrip("v")[:1].isdigit() and not parse_image_name(parts[0]).has_tag
    tagged = ":".join(parts) if is_tag else ""
    closed = tagged if tagged and not find_image_error(tagged) else "".join(parts)
    lower = lower_repository(image)
    if not separator and lower != image and not find_image_error(lower):
        hint = f"; write `{lower}`"
    ended = image.rstrip(",;:")
    if ended != image and not find_image_error(ended):
        hint = f"; write `{ended}`, without the `{image[len(ended) :]}` at its end"
    if closed != image and not find_image_error(closed):
        hint = f"; write `{closed}`"
    # Before an `@`, there can be a password.
    if separator and "@" not in rest and (also := find_image_error(rest)):
        hint += f"; also, {also}"
    yield Violation(At(container.data, "image"), Sentence("{}{}", message, hint))


@rule("container", WARNING, fields=("image",))
def untagged_image(container: Container) -> Iterator[Violation]:
    """An image without a tag or digest, which means `latest`.

    Without a pull policy, Kubernetes pulls it at every start. A restarted pod, or a worker that joins later, can run a
    different image than its peers.

    Pin a version or a digest.

    When to turn it off: an overlay of images (`images` with `newTag`) sets the tag before anything is checked, so
    base files need no suppression; only for throw-away environments is `off` reasonable.
    """
    image = container.image
    if not image or "@" in image or ":" in image.rpartition("/")[2] or is_unresolved(image):
        return
    # Istio replaces this word when it injects its proxy.
    if image == "auto" and container.name == "istio-proxy":
        return
    if not find_image_error(image):
        yield Violation(
            At(container.data, "image"),
            Sentence("`{}` has no tag, so `latest` is used; pin a version or a digest", image),
        )


@rule("container", WARNING, fields=("image",))
def mutable_image_tag(container: Container) -> Iterator[Violation]:
    """An image with a mutable tag, such as `latest`.

    The registry can return a different image for the tag at any time. A restarted pod, or a worker that joins later,
    can run other code than its peers, and afterwards it is unknown which image trained the model.

    Write a version, such as `bert:1.4.2`, or better a digest, which always names the same image.

    When to turn it off: in development, where the newest image is wanted at each start, write `mutable-image-tag:
    [{severity: off, environments: [dev]}]`, and keep it in prod.
    """
    image = container.image
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag in MUTABLE_TAGS and "@" not in image and not is_unresolved(image):
        yield Violation(At(container.data, "image"), Sentence("`{}` is a mutable tag; pin a version or a digest", tag))


@rule("container", WARNING, fields=("imagePullPolicy",))
def stale_image(container: Container) -> Iterator[Violation]:
    """A mutable tag with `imagePullPolicy: IfNotPresent`.

    A node that already has an image for the tag keeps it, while another node pulls the newest one. The pods of one job
    can run different code.

    Pin a version or a digest, or set `imagePullPolicy: Always`.

    When to turn it off: for images that are loaded onto the nodes by hand, as with kind or an air-gapped cluster,
    `IfNotPresent` is required; accept it in that environment.
    """
    policy = as_text(container.data["imagePullPolicy"])
    image = container.image
    if policy != "IfNotPresent" or not image or is_unresolved(image):
        return
    if parse_image_name(image).is_mutable:
        tag = parse_image_name(image).tag
        subject = f"`{tag}` is a mutable tag" if tag else "an image without a tag uses the mutable tag `latest`"
        message = Sentence("{}, but with `{}` a node keeps the image it already has; pin a version", subject, policy)
        yield Violation(At(container.data, "imagePullPolicy"), message, ((At(container.data, "image"), "the image"),))


# Roles may use different builds of one version.
_BUILDS = frozenset(("cpu", "gpu", "cuda", "rocm", "launcher", "worker", "master", "ps", "server", "scheduler"))
# The images that the project Ray publishes: their tags are versions of Ray, and may name a version of Python.
_RAY = ("rayproject/ray", "rayproject/ray-ml", "rayproject/ray-llm")
_RAY_TAG = lazy_pattern(r"([0-9]+\.[0-9]+\.[0-9]+)(?:-(py[0-9]+))?(?![.\w])")


@rule("manifest", WARNING)
def mixed_image_versions(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job that run different versions of the same image.

    The roles communicate, and most frameworks fail or hang when their versions differ. Usually one role was forgotten
    in an update. Ray refuses workers that have another version of Ray or Python than the head: that is an error for
    the images of the project Ray, whose tags are versions. A `rayVersion` other than that of the head is a warning:
    KubeRay decides by it which features Ray has.

    Use the same version in all roles.

    When to turn it off: roles that never exchange data with one another, such as a TensorBoard beside the workers,
    can have other versions: suppress it on the image of that role.
    """
    refused = list(_check_ray(manifest)) if manifest.group == "ray.io" else []
    yield from refused
    if len(manifest.roles) < 2 or any(each.severity is ERROR for each in refused):
        return
    images = [
        (role, At(main.data, "image"))
        for role in manifest.roles
        if (main := role.pod.main_container) and "image" in main.data
    ]
    if len({as_text(at.node) for _, at in images}) < 2:
        return
    first: dict[str, tuple[ImageName, At]] = {}
    for role, at in images:
        name = parse_image_name(as_text(at.node))
        other, where = first.setdefault(f"{name.domain}/{name.repository}", (name, at))
        if _version(name) != _version(other) and not _are_builds(name, other):
            message = Sentence(
                "`{}` runs version `{}` of an image that another role runs as", role.replica_type, _format(name)
            )
            message += f" `{_format(other)}`; use the same version"
            yield Violation(at, message, ((where, "the image of the other role"),))


def _check_ray(manifest: Manifest) -> Iterator[Violation]:
    """Check the images of a Ray cluster, as far as they are those of the project Ray."""
    path = RAY_CLUSTERS.get(manifest.kind_name, ("spec", "jobTemplate", "rayClusterSpec"))
    cluster = as_mapping(get_path(manifest.object, *path))
    head, *workers = (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))
    image, main = _find_ray_version(head)
    declared = as_text(cluster.get("rayVersion")).strip().removeprefix("v")
    if main and declared and declared != main[0] and _RAY_TAG.fullmatch(declared):
        message = Sentence(
            "`rayVersion` is `{}`, but the image of the head has Ray {}; use the same version", declared, main[0]
        )
        yield Violation(At(cluster, "rayVersion"), message, ((image, "the image of the head"),))
    for group in workers:
        place, found = _find_ray_version(group)
        if not main or not found or (found[0] == main[0] and (not found[1] or not main[1] or found[1] == main[1])):
            continue
        name = as_text(as_mapping(group).get("groupName"))
        own, other = ("-".join(filter(None, each)) for each in (found, main))
        message = Sentence(
            "group `{}` runs version `{}` of Ray, but the head runs `{}`, so the head refuses its", name, own, other
        )
        related = ((image, "the image of the head"),)
        yield Violation(
            place, Sentence("{} workers for a version mismatch; use the same version", message), related, ERROR
        )


def _find_ray_version(group: Plain) -> tuple[At | None, tuple[str, ...]]:
    """Return the place of the image of a group's Ray container, and its versions of Ray and Python; () if unknown."""
    containers = as_list(get_path(as_mapping(group), "template", "spec", "containers"))
    place = find_at(containers[0], "image") if containers else None
    name = parse_image_name(as_text(place.node) if place is not None else "")
    match = _RAY_TAG.match(name.tag) if name.repository in _RAY and not name.digest else None
    return place, (match[1], match[2] or "") if match else ()


def _version(name: ImageName) -> tuple[str, str]:
    return ("", name.digest) if name.digest else (name.tag or "latest", "")


def _are_builds(name: ImageName, other: ImageName) -> bool:
    """Return True if the names differ in the hardware or role that the images are built for."""
    return bool(_BUILDS & (name.name_tokens ^ other.name_tokens))


def _format(name: ImageName) -> str:
    return name.digest[:19] if name.digest else name.tag or "latest"


@rule("container", INFO, fields=("imagePullPolicy",))
def unnecessary_image_pull(container: Container) -> Iterator[Violation]:
    """`imagePullPolicy: Always` on an image pinned by digest.

    A digest always refers to the same image, so contacting the registry at every start only adds a way to fail.

    Use `IfNotPresent`, or remove the policy.

    When to turn it off: where the policy AlwaysPullImages checks the right to pull for each pod, the field is
    rewritten anyway; set the rule to `off` there.
    """
    if as_text(container.data["imagePullPolicy"]) == "Always" and "@sha256:" in container.image:
        message = "pulling always is unnecessary for an image pinned by digest; use `IfNotPresent`"
        node = At(container.data, "imagePullPolicy")
        yield Violation(node, message, fix_steps=(FixStep("set", node, "IfNotPresent"),), safe=False)


_ACCELERATED = frozenset(("gpu", "cuda", "rocm", "npu", "hpu", "tpu"))


@rule("container", WARNING, fields=("image",))
def cpu_image_on_gpus(container: Container) -> Iterator[Violation]:
    """An image built for CPUs, according to its name, in a container that requests accelerators.

    The framework in the image does not see the devices: it trains on the CPU or fails at the first `cuda()`, and no
    other job can use the devices in the meantime.

    Use an image built for the accelerator, or request none.

    When to turn it off: when the tag says `cpu` and the image has CUDA nevertheless, as for images named after a
    benchmark, suppress the finding on the line of the image and say what is in it.
    """
    image = container.image
    if "cpu" not in image or not container.devices:
        return
    name = parse_image_name(image)
    # Images of Gaudi have a build of the framework for CPUs, which a plugin extends.
    if name.domain == "vault.habana.ai":
        return
    features = name.name_tokens
    if "cpu" in features and not features & _ACCELERATED:
        devices = format_devices(container.devices)
        message = Sentence(
            "`{}` is built for CPUs, but the container requests {}; use an image built for them", image, devices
        )
        yield Violation(At(container.data, "image"), message, ((container.device_place, ""),))


# Images in which `NVIDIA_VISIBLE_DEVICES` is `all`.
_EXPOSING = lazy_pattern(r"(?:docker\.io/)?nvidia/cuda:|nvcr\.io/nvidia/")


@rule("job", INFO)
def gpu_image_without_gpus(manifest: Manifest) -> Iterator[Violation]:
    """An image built for GPUs, according to its name, in a job that requests no device.

    The job trains on the CPU, slowly, or fails at the first `cuda()`. Images of NVIDIA set `NVIDIA_VISIBLE_DEVICES` to
    `all`: where its container runtime is the default, the container sees all GPUs of the node, and disturbs the jobs
    that were given them. This is a warning.

    Request GPUs in `resources.limits`, or use the smaller image for CPUs.

    When to turn it off: for a job that prepares data with the libraries of the GPU image, where one image for all
    steps is worth more than its size, set the rule to `off` for the paths of these jobs.
    """
    for role in manifest.roles:
        main = role.pod.main_container
        image = main.image if main else ""
        if main and not role.pod.partial and (found := find_gpu_word(image)):
            if manifest.has_devices:
                return
            if not any(_may_see_devices(each.pod) for each in manifest.roles):
                message = Sentence("the image is built for GPUs (`{}` in its name), but the job requests none", found)
                exposes = _EXPOSING.match(image) and "NVIDIA_VISIBLE_DEVICES=" not in main.search_text
                message += ", and it then sees all GPUs of its node, without a reservation" if exposes else ""
                message += "; request GPUs or use an image for CPUs"
                yield Violation(At(main.data, "image"), message, severity=WARNING if exposes else None)
                return


def _may_see_devices(pod: Pod) -> bool:
    """Return True if a pod may see devices: known ones, unknown extended resources, or all devices of its node."""
    return any(
        any("/" in name for name in (*container.limits, *container.requests))
        or get_path(container.data, "resources", "claims") is not None
        or get_path(container.data, "securityContext", "privileged") is not None
        for container in pod.containers
    )
