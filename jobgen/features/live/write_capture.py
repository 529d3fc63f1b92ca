"""Write a capture into its folder, and remove what the last one wrote. Nothing outside of that folder is touched.

A link in the folder leads to files that no capture wrote, also if they are in the repository. So links are refused: the
folder itself, the folders above it, its own folder of running jobs, and each file that is written or removed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError
from jobgen.features.live.capture import RUNNING_FOLDER, Captured
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.atomic import make_folder, replace_files
from jobgen.repo.captures import CAPTURE, INDEX
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

_PART = lazy_pattern(r"-\d{3}\Z")
_NAME = lazy_pattern(r"(?:\.running/)?[a-z0-9][a-z0-9.-]*\.yaml\Z")
"""The names of files that a capture writes: in its folder, or in that of running jobs."""


def write_capture(root: Path, folder: str, captured: Captured) -> tuple[str, ...]:
    """Write the files of a capture, and remove those of the last one that are not among them.

    Of what could not be read now, the files of the last capture stay; they are returned.
    """
    check_folder(root, folder)
    home = root / folder
    old = _list_old(home)
    check_folder(root, folder, {*old, *captured.files})
    kept = tuple(sorted(name for name in old - captured.files.keys() if _name_resource(name) in captured.unread))
    files = {**captured.files, CAPTURE: _write_index(captured, {*captured.files, *kept})}
    for parent in {(home / name).parent for name in files}:
        make_folder(parent, root)
    # The list of files is written before others are removed, so that a killed run loses none.
    replace_files({home / name: text.encode() for name, text in files.items()}, root)
    for name in old - files.keys() - set(kept):
        check_folder(root, folder, [name])
        (home / name).unlink(missing_ok=True)
    return kept


def check_folder(root: Path, folder: str, names: Iterable[str] = ()) -> None:
    """Raise a UsageError if the folder of a capture is not in the repository, or if there is a link on the way to it.

    `names` are files in the folder that are written or removed.
    """
    top = os.path.realpath(root)
    for name in ("", CAPTURE, f"{RUNNING_FOLDER}/", *sorted(names)):
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.isabs(path) or path.split(os.sep)[0] in (os.pardir, os.curdir):
            raise UsageError(f"`{folder}` is not a folder in the repository; name one such as `cluster/prod`")
        if os.path.normcase(os.path.realpath(os.path.join(top, path))) != os.path.normcase(os.path.join(top, path)):
            link = _find_link(top, path)
            advice = (
                f"put a {'folder' if os.path.isdir(os.path.join(top, link)) else 'file'} in its place, or remove it"
            )
            raise UsageError(f"`{link}` is a link, and a capture writes only in `{folder}` itself; {advice}")


def _find_link(top: str, path: str) -> str:
    """Return the first link on the way to a path."""
    steps = path.split(os.sep)
    starts = (os.path.join(*steps[:count]) for count in range(1, len(steps) + 1))
    return next((start for start in starts if os.path.islink(os.path.join(top, start))), path)


def _write_index(captured: Captured, files: Collection[str]) -> str:
    """Write what is known of the capture itself: an object, so that a folder of manifests stays one."""
    listed = "".join(f"{name}\n" for name in sorted(files))
    data = {"day": captured.day, "kubernetes": captured.kubernetes, "files": listed}
    data |= {f"operator.{name}": version for name, version in captured.operators.items()}
    data |= {"unread": "".join(f"{name}\n" for name in sorted(captured.unread))} if captured.unread else {}
    return to_yaml({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": INDEX}, "data": data})


def _name_resource(file: str) -> str:
    """Return the resource whose objects a file has: `nodes` of `nodes-002.yaml`."""
    return _PART.sub("", file.rpartition("/")[2].removesuffix(".yaml"))


def _list_old(home: Path) -> set[str]:
    """Return the files that the last capture wrote; nothing that it did not list is removed."""
    try:
        content = (home / CAPTURE).read_bytes()
    except OSError:
        return set()
    documents = read(content, CAPTURE).documents
    data: Any = documents[0].data.get("data") if documents and isinstance(documents[0].data, dict) else None
    listed = str(data.get("files", "")).split("\n") if isinstance(data, dict) else []
    return {name for name in listed if _NAME.match(name) and ((home / name).is_symlink() or (home / name).is_file())}
