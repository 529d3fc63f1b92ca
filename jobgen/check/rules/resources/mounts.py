"""Mounts of ConfigMaps where a file becomes a folder, and volumes that are read-only."""

import posixpath
from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Pod
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, find_closest

_NOT_READ = ("dir", "folder", "path", "root")


@rule("container", WARNING, fields=("volumeMounts",), words=("configMap", "secret"))
def file_mounted_as_folder(container: Container) -> Iterator[Violation]:
    """A ConfigMap or Secret that is mounted at the path of one of its files, without `subPath`.

    Kubernetes makes a folder of that name, with the files in it. It is an error if the command reads the path as a
    file (`Is a directory`). A `subPath` that the ConfigMap does not have becomes an empty folder, which is an error.

    Set `subPath` to the name of the file, or mount the folder around it.

    When to turn it off: if the program expects a folder of that name, such as `conf.d.yaml`, suppress the warning
    on the mount; it was meant, but it surprises every reader.
    """
    for mount in container.volume_mounts:
        path = as_text(mount.get("mountPath"))
        if ("." not in path and "subPath" not in mount) or "subPathExpr" in mount:
            continue
        name, wanted = posixpath.basename(path), as_text(mount.get("subPath"))
        if "." not in name.strip(".") and not wanted:
            continue
        volume = _find_volume(container, mount)
        files = _list_files(container, volume)
        if not wanted and name in files:
            readers = [word for word in container.words if _reads(word, path)]
            effect = "which the command reads as a file" if readers else "which has the file in it"
            message = Sentence("`{}` becomes a folder, {}; set `subPath: {}`", path, effect, name)
            yield Violation(At(mount, "mountPath"), message, severity=ERROR if readers else None)
        elif wanted and files and "items" not in volume and not _has(wanted, files):
            message = Sentence("the ConfigMap has no `{}`, so `{}` becomes an empty folder", wanted, path)
            advice = did_you_mean(wanted, sorted(files)) or "; correct `subPath`"
            yield Violation(At(mount, "subPath"), Sentence("{}{}", message, advice), severity=ERROR)


@rule("pod", ERROR, fields=("volumes",), words=("medium",))
def unknown_medium(pod: Pod) -> Iterator[Violation]:
    """An `emptyDir` with a medium that no kubelet knows, such as `memory`.

    The API server accepts it. The kubelet cannot mount the volume (`unknown storage medium`), so the pod stays in
    `ContainerCreating`.

    Write `Memory`, or leave `medium` out for the disk of the node.

    When to turn it off: never needed: there is no other medium than `Memory` and huge pages.
    """
    for volume in pod.volumes:
        source = as_mapping(volume.get("emptyDir"))
        medium = as_text(source.get("medium"))
        if medium and medium not in ("Memory", "HugePages") and not medium.startswith("HugePages-"):
            message = Sentence("no storage medium is called `{}`, so that the kubelet cannot mount the volume", medium)
            meant = "Memory" if find_closest(medium.lower(), ["memory", "ram", "tmpfs", "shm"]) else ""
            steps = (FixStep("set", At(source, "medium"), meant),) if meant else ()
            advice = (
                Sentence("write `{}`", meant)
                if meant
                else Sentence("write `Memory`, or leave it out for the disk of the node")
            )
            yield Violation(
                At(source, "medium"),
                Sentence("{}; {}", message, advice),
                fix_steps=steps,
                safe=medium.lower() == "memory",
            )


def _find_volume(container: Container, mount: Mapping[str, Plain]) -> Mapping[str, Plain]:
    name = as_text(mount.get("name"))
    return next((volume for volume in container.pod.volumes if as_text(volume.get("name")) == name), {})


def _reads(word: str, path: str) -> bool:
    name, equals, value = word.rpartition("=")
    return word == path or (bool(equals) and value == path and not name.lower().endswith(_NOT_READ))


def _has(path: str, files: Mapping[str, Plain]) -> bool:
    wanted = posixpath.normpath(path)
    return wanted == "." or any(name == wanted or name.startswith(f"{wanted}/") for name in files)


def _list_files(container: Container, volume: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Return the files of a volume by their paths in it, as far as they are known."""
    config, secret = as_mapping(volume.get("configMap")), as_mapping(volume.get("secret"))
    items = {as_text(item.get("path")): item.get("key") for item in iter_mappings((config or secret).get("items"))}
    if items or not config or config.get("optional") is True:
        return items
    manifest = container.pod.manifest
    return manifest.find_config(manifest.namespace, as_text(config.get("name"))) or {}


@rule("container", WARNING, fields=("volumeMounts",), words=("configMap", "readOnly", "secret"))
def read_only_output(container: Container) -> Iterator[Violation]:
    """An output, such as `--output_dir`, on a volume that is mounted read-only.

    The program fails when it writes its first file: `Read-only file system`. Volumes of ConfigMaps and Secrets are
    always read-only.

    Mount the volume without `readOnly`, or write to another path.

    When to turn it off: when the program only checks that the folder exists and writes elsewhere, suppress it on
    the option; a first run shows it within seconds.
    """
    # Imported late: few containers mount what is read-only.
    from jobgen.k8s.output_paths import find_output_mounts

    for text, place, mount in find_output_mounts(container):
        volume = _find_volume(container, mount)
        claim = get_path(volume, "persistentVolumeClaim", "readOnly")
        is_read_only = mount.get("readOnly") is True or claim is True
        if is_read_only or "configMap" in volume or "secret" in volume:
            field = "`readOnly: true`" if is_read_only else "a ConfigMap or Secret"
            message = (
                Sentence("`{}` is on a volume with {}", text, field)
                if is_read_only
                else Sentence("`{}` is in {}", text, field)
            )
            advice = "remove `readOnly`, or write to another path" if is_read_only else "write to another path"
            related = ((At(mount, "mountPath"), "mounted here"),)
            yield Violation(place, Sentence("{}, so writing fails; {}", message, advice), related)
