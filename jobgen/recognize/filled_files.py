"""Files whose variables are filled in with values of the repository: what is judged is the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize import FILLED, Taken, env_files
from jobgen.recognize.surroundings import Surroundings
from jobgen.repo.files import FileEntry

if TYPE_CHECKING:
    from jobgen.recognize.flux import FluxBuild

_FLUX = b"kustomize.toolkit.fluxcd.io"


class FilledFiles(NamedTuple):
    """What is judged instead of files with variables."""

    entries: list[FileEntry]
    """The builds that fill in variables."""
    taken: dict[str, Taken]
    """Files that are judged in these builds."""
    roots: frozenset[str]
    """Kustomizations that need no build of their own."""


def fill_files(around: Surroundings, taken: Mapping[str, Taken], own: frozenset[str]) -> FilledFiles:
    """Find what fills in the variables of files. `own` are the files that are linted."""
    builds = [each for each in _find_flux(around) if each.file in own or not own.isdisjoint(each.target.files)]
    filled = _describe(around, builds, taken, own)
    entries = list(_list_entries(builds, own))
    for made in env_files.find_builds(around.tree, around.objects - filled.keys()):
        path = f"{made.file}/{made.env_file}"
        entries.append(FileEntry(path, content=made.read(), optional=True, build=made))
        filled[made.file] = Taken(FILLED, f"judged in one build: {made.env_file} sets its variables")
    return FilledFiles(entries, filled, frozenset(root for each in builds for root in each.target.roots))


def _find_flux(around: Surroundings) -> Sequence[FluxBuild]:
    manifests = (path for path in around.paths if path.endswith((".yaml", ".yml")))
    if not any(_FLUX in around.tree.read(path).content for path in manifests):
        return ()
    # Imported late: most folders have none.
    from jobgen.recognize.flux import find_builds

    return find_builds(around)


def _describe(
    around: Surroundings, builds: Sequence[FluxBuild], taken: Mapping[str, Taken], own: frozenset[str]
) -> dict[str, Taken]:
    """Return what the files are that Flux builds, by path."""
    users: dict[str, list[FluxBuild]] = {}
    for each in builds:
        for path in each.target.files & own:
            users.setdefault(path, []).append(each)
    filled: dict[str, Taken] = {}
    for path, several in sorted(users.items()):
        files = list(dict.fromkeys(each.file for each in several))
        by = files[0] if len(files) == 1 else f"{files[0]} (and {len(files) - 1} more)"
        has_variables = b"${" in around.tree.read(path).content
        does = f"{by} substitutes its variables" if has_variables else f"{by} applies it"
        if path in around.objects:
            count = "one build" if len(several) == 1 else f"{len(several)} builds"
            filled[path] = Taken(FILLED, f"judged in {count}: {does}")
        elif path in taken and has_variables:
            filled[path] = taken[path]._replace(why=f"{taken[path].why}; {does}")
    return filled


def _list_entries(builds: Iterable[FluxBuild], own: frozenset[str]) -> Iterator[FileEntry]:
    """Return the entries of builds; several builds of one name are numbered."""
    seen: Counter[str] = Counter()
    for each in builds:
        name = f"{each.file}/{each.kustomization.name}"
        seen[name] += 1
        path = name if seen[name] == 1 else f"{name} ({seen[name]})"
        made = each if each.file in own else each.limit_to(own)
        yield FileEntry(path, content=made.read(), optional=True, build=made)
