"""Modes of files in volumes: decimal numbers that look octal, and private keys that ssh refuses."""

import posixpath
from collections.abc import Iterator, Mapping

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path, list_mappings
from jobgen.k8s.objects import Container, Pod
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

_MODE = 0o644
"""The mode of files of Secrets, by default. They belong to root."""
_OTHERS, _GROUP, _MOST = 0o077, 0o040, 0o777
_READABLE = 0o044
_OPTION = lazy_pattern(
    r"\b(?:ssh|scp|sftp)\b[^\n;&|]{0,300}?\s-i[\s=]*[\"']?(/[\w./-]+)|\bssh-add\s+(?:-\S+\s+)*(/[\w./-]+)"
)
_SETTING = lazy_pattern(r"(?i)\bIdentityFile[\s=]+[\"']?(/[\w./-]+)")
# What starts ssh, which then reads the keys of its own folder.
_STARTS_SSH = lazy_pattern(r"\bgit@[\w.-]+:|\bssh://|\b(?:ssh|scp|sftp|rsync)\s")
_OWN_FOLDER = "/root/.ssh"
_OWN_KEYS = ("id_rsa", "id_ed25519", "id_ecdsa")


class _File(NamedTuple):
    """A file of a Secret."""

    mode: int
    place: At
    """Where its mode is written, or else the name of the Secret."""


_DECIMAL = frozenset((400, 440, 444))
"""Modes that look octal, and are decimal. YAML reads `0400` as the number 256."""


@rule("pod", WARNING, fields=("volumes",), words=("defaultMode", "mode"))
def decimal_file_mode(pod: Pod) -> Iterator[Violation]:
    """A mode of files such as `400`, which Kubernetes reads as a decimal number.

    `defaultMode: 400` is 0620: the owner can write, the group can only write, and others cannot read. The pod starts,
    and the program that reads the file fails, or ssh refuses the key. YAML takes a number with a leading `0` as octal.

    Write `0400`, or `256`, which is the same and the only form that JSON has.

    When to turn it off: no program needs the mode 0620, 0670 or 0674, so that the finding is right wherever it stands.
    """
    for volume in pod.volumes:
        for holder, field in _list_modes(volume):
            mode = as_integer(holder[field])
            if mode in _DECIMAL:
                meant = f"0{mode}"
                message = Sentence(
                    "`{}: {}` is decimal, which is the mode {:04o}; write `{}`", field, mode, mode, meant
                )
                yield Violation(At(holder, field), message)


def _list_modes(volume: Mapping[str, Plain]) -> Iterator[tuple[Mapping[str, Plain], str]]:
    """Yield the modes of a volume: what has them, and the field."""
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        holder = as_mapping(volume.get(name))
        if "defaultMode" in holder:
            yield holder, "defaultMode"
        sources = [as_mapping(each) for source in list_mappings(holder.get("sources")) for each in source.values()]
        for source in (holder, *sources):
            yield from ((item, "mode") for item in list_mappings(source.get("items")) if "mode" in item)


@rule("container", WARNING, fields=("volumeMounts",), words=("ssh",))
def unusable_ssh_key(container: Container) -> Iterator[Violation]:
    """A private key of a Secret that ssh refuses, because others can read it, or that its user cannot read.

    Files of a Secret have mode 0644 and belong to root. As root, ssh ignores a key that its group or others can read
    (`UNPROTECTED PRIVATE KEY FILE`), so that `git clone` and `ssh` fail with `Permission denied (publickey)`. With
    `fsGroup`, files are readable for the group as well. Another user than root can use such a key, but cannot read one
    with mode 0400 that belongs to root. The user of an image is taken for root if the pod sets none.

    Set `defaultMode: 0400` in the volume for root; for another user, leave the mode and set `fsGroup`.

    When to turn it off: if the image has another user than root, say so with `runAsUser`, which is also true for the
    cluster; if the command copies the key before it uses it, suppress the finding on the volume.
    """
    text = _join(container)
    paths = [path for found in _OPTION.findall(text) for path in found if path]
    paths += _SETTING.findall(text)
    is_default = not paths
    if is_default and _STARTS_SSH.search(text):
        paths = [posixpath.join(_OWN_FOLDER, name) for name in _OWN_KEYS]
    user, group = _find_user(container), as_integer(get_path(container.pod.spec, "securityContext", "fsGroup"))
    for path in dict.fromkeys(paths):
        found = _find_file(container, posixpath.normpath(path), is_default=is_default)
        message = _describe(path, found, user, group) if found is not None else ""
        if found is not None and message:
            place = next((each for each in container.value_places if path in as_text(each.node)), None)
            related = ((place, "the key is used here"),) if place is not None else ()
            yield Violation(found.place, message, related)
            return


def _join(container: Container) -> str:
    """Return its command line in one line, and the values of its variables."""
    values = [as_text(entry.get("value")) for _, entry in container.env]
    return "\n".join((" ".join(container.words), *values))


def _find_user(container: Container) -> int | None:
    """Return the user of a container: 0 if none is set, and None if it is another one than root, or not known."""
    contexts = [as_mapping(each.get("securityContext")) for each in (container.data, container.pod.spec)]
    users = [as_integer(each["runAsUser"]) for each in contexts if "runAsUser" in each]
    if users:
        return users[0]
    return None if any(each.get("runAsNonRoot") is True for each in contexts) else 0


def _find_file(container: Container, path: str, *, is_default: bool) -> _File | None:
    """Return the file of a Secret at a path; None if it is another file, or none."""
    mounts = [mount for mount in container.volume_mounts if _is_in(path, as_text(mount.get("mountPath")))]
    if not mounts:
        return None
    mount = max(mounts, key=lambda each: len(as_text(each.get("mountPath"))))
    inner = posixpath.relpath(path, as_text(mount.get("mountPath")))
    name = as_text(mount.get("subPath")) if inner == "." else inner
    for volume in container.pod.volumes:
        if as_text(volume.get("name")) == as_text(mount.get("name")):
            return _read_volume(container, volume, name, is_default=is_default)
    return None


def _is_in(path: str, folder: str) -> bool:
    return bool(folder) and f"{path}/".startswith(f"{posixpath.normpath(folder)}/")


def _read_volume(container: Container, volume: Mapping[str, Plain], name: str, *, is_default: bool) -> _File | None:
    secret, projected = as_mapping(volume.get("secret")), as_mapping(volume.get("projected"))
    holder = secret or projected
    sources = (
        [secret] if secret else [as_mapping(each.get("secret")) for each in list_mappings(projected.get("sources"))]
    )
    for source in filter(None, sources):
        items = list_mappings(source.get("items"))
        item = next((each for each in items if as_text(each.get("path")) == name), {})
        if (items and not item) or not (items or _may_have(container, source, name, is_default=is_default)):
            continue
        field, at = ("mode", item) if "mode" in item else ("defaultMode", holder)
        own = "secretName" if secret else "name"
        place = find_at(at, field) or find_at(source, own) or find_at(volume, "name")
        mode = as_integer(at.get(field))
        return _File(_MODE if mode is None else mode, place) if place is not None else None
    return None


def _may_have(container: Container, source: Mapping[str, Plain], name: str, *, is_default: bool) -> bool:
    """Return True if a Secret has a key, or can have it: ssh reads several keys by itself, of which few exist."""
    manifest = container.pod.manifest
    found = as_text(source.get("secretName") or source.get("name"))
    keys = manifest.find_config(manifest.namespace, found, "Secret") if found else None
    return name in keys if keys is not None else not is_default


def _describe(path: str, file: _File, user: int | None, group: int | None) -> str:
    """Say why ssh cannot use a key; empty if it can."""
    if file.mode in _DECIMAL or file.mode > _MOST:
        # Another finding is about the number.
        return ""
    if user == 0:
        mode = file.mode | _GROUP if group is not None else file.mode
        if not mode & _OTHERS:
            return ""
        message = f"ssh refuses the key `{path}`, which others than root can read"
        if group is not None and not file.mode & _OTHERS:
            message = f"{message} with `fsGroup` (`UNPROTECTED PRIVATE KEY FILE`)"
            return f"{message}; remove `fsGroup`, or copy the key to a file with mode 0600 first"
        message = f"{message} with mode {mode:04o} (`UNPROTECTED PRIVATE KEY FILE`)"
        return f"{message}; set `defaultMode: 0400`"
    if user is not None and group is None and not file.mode & _READABLE:
        message = f"`{path}` has mode {file.mode:04o} and belongs to root, so that user {user} cannot read it"
        return f"{message}; set `fsGroup: {user}` in `securityContext` of the pod"
    return ""
