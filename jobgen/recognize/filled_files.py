"""Files whose variables are filled in with values of the repository: what is judged is the result."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, untraced, value_of, with_tree
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import FILLED, Taken
from jobgen.recognize.substituted import Variable, fill_leaf
from jobgen.recognize.tree import FileTree, Surroundings
from jobgen.repo.files import VARIABLE_LAYER, Build, Built, BuiltObject, File, FileEntry
from jobgen.yamlio.read import read

_VARIABLE = lazy_pattern(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_LINE = lazy_pattern(r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)\Z", re.ASCII)
_QUOTED_VALUE = lazy_pattern(r"([\"'])(.*?)\1[ \t]*(?:#.*)?\Z")
_COMMENT = lazy_pattern(r"(?:\A|[ \t]+)#.*\Z")
# What a shell or make does with a file of variables; the name of the file follows on the same line.
_LOADS = r"(?:\bsource\b|(?:^|[;&|]|\bthen\b)[ \t]*\.[ \t]|^-?include\b|\bexport\b|\bxargs\b|\bcat\b|\bdotenv\b)"
# The argument that limits which variables envsubst replaces.
_ONLY = lazy_pattern(rb"\benvsubst\b[ \t]+(?:\"([^\"\n]*)\"|'([^'\n]*)')")


class EnvBuild(Build):
    """A manifest, after envsubst."""

    def __init__(self, file: str, manifest: File, env: File, known: Mapping[str, Variable]) -> None:
        super().__init__(file)
        self.limit_to(frozenset((file,)))
        self.env_file = env.path
        self._sources = (manifest, env)
        self._known = known

    def read(self) -> bytes:
        """Return everything that its objects depend on."""
        names = repr(sorted(self._known)).encode()
        return b"\n".join((*(each.content for each in self._sources), names))

    def make(self) -> Built:
        """Fill in the variables."""
        content = self._sources[0].content
        before = read(content, self.file, traced=True)
        after = read(_expand(content.decode(), self._known).encode(), self.file)
        objects: list[BuiltObject] = []
        for position, (made, like) in enumerate(zip(after.documents, before.documents, strict=False)):
            traced = _trace(made.data, like.data, self._known, like.location)
            objects.append(BuiltObject(made.data, traced, self.file, position, like.location))
        return Built(objects, after.findings)

    def read_sources(self, finding: Finding) -> Iterator[File]:
        """Return the files that the values of a finding may come from."""
        del finding
        yield from self._sources


def find_builds(tree: FileTree, objects: Collection[str]) -> list[EnvBuild]:
    """Return the builds of the manifests whose variables an `.env` file sets."""
    with_signs = (path for path in sorted(objects) if b"$" in tree.read(path).content)
    return list(islice(filter(None, (_make(tree, path) for path in with_signs)), 500))


def _make(tree: FileTree, path: str) -> EnvBuild | None:
    name = posixpath.basename(path).encode("utf-8", "surrogateescape")
    script = tree.find_script(path, b"envsubst", name)
    env = _find_env(tree, path, script) if script else None
    manifest = tree.read(path)
    if env is None or not _is_text(manifest.content) or not _is_text(env.content):
        return None
    text = manifest.content.decode()
    wanted = {match[1] or match[2] for match in _VARIABLE.finditer(text)}
    commands = (line for line in tree.read(script).content.split(b"\n") if name in line)
    only = next(filter(None, map(_ONLY.search, commands)), None)
    if only:
        named = (only[1] or only[2] or b"").decode("utf-8", "replace")
        wanted &= {match[1] or match[2] for match in _VARIABLE.finditer(named)}
    known = {name: each for name, each in read_env(env).items() if name in wanted}
    # A line of the script that sets a variable itself, or that is too long to search.
    every = "|".join(map(re.escape, sorted(wanted)))
    sets = re.compile(rf"(?:^|[\s;])(?:{every})[?:+]?=|\bread\b.*\b(?:{every})\b").search
    lines = tree.read(script).content.decode("latin-1").split("\n")
    if not wanted or wanted - known.keys() or any(len(line) > _MAX_LINE or sets(line) for line in lines):
        return None
    before, after = (read(each.encode(), path).documents for each in (text, _expand(text, known)))
    is_list = any(str(value_of(each.data.get("kind", ""))).endswith("List") for each in before)
    return None if is_list or len(before) != len(after) else EnvBuild(path, manifest, env, known)


_MAX_LINE = 2_000


def _find_env(tree: FileTree, path: str, script: str) -> File | None:
    """Return the only `.env` file beside a manifest or a script that the script loads."""
    every = tree.read(script).content.decode("utf-8", "replace").split("\n")
    lines = [line for line in every if len(line) < _MAX_LINE]
    folders = dict.fromkeys(map(posixpath.dirname, (path, script)))
    find = re.compile(r"(?<![\w.-])[\w-]{0,60}(?:\.[\w-]{1,60}){0,3}?\.env\b(?!\.)").findall
    names = dict.fromkeys(match for line in lines for match in find(line))
    loaded = [name for name in names if any(re.search(rf"{_LOADS}.*{re.escape(name)}", line) for line in lines)]
    found = [each for name in loaded for folder in folders if tree.exists(each := posixpath.join(folder, name))]
    file = tree.read(found[0]) if len(found) == 1 else None
    return file if file and file.finding is None else None


def read_env(file: File) -> dict[str, Variable]:
    """Return the variables of an `.env` file whose values are written there as they are."""
    found: dict[str, Variable] = {}
    for number, line in enumerate(file.content.decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.match(line) if len(line) < _MAX_LINE else None
        if match is None:
            continue
        found.pop(match[1], None)
        quoted = _QUOTED_VALUE.match(match[2].strip())
        value = quoted[2] if quoted else _COMMENT.sub("", match[2]).strip()
        is_literal = quoted is not None and quoted[1] == "'"
        is_plain = is_literal or not (set(value) & set("$`\\") or (quoted is None and set(value) & set("\"'")))
        if is_plain:
            found[match[1]] = Variable(value, Location(file.path, number, match.start(1) + 1))
    return found


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _expand(text: str, known: Mapping[str, Variable]) -> str:
    def find(match: re.Match[str]) -> str:
        found = known.get(match[1] or match[2])
        return found.value if found else match[0]

    return _VARIABLE.sub(find, text)


def _trace(value: Any, like: Any, known: Mapping[str, Variable], location: Location) -> Any:
    """Return data with the locations of the same data before its variables were filled in."""
    if type(like) is TracedScalar:
        if untraced(like) == value and type(like.value) is type(value):
            return like
        names = [match[1] or match[2] for match in _VARIABLE.finditer(str(like.value))]
        return with_tree(fill_leaf(like, "", names, known, location), value)
    if isinstance(value, dict) and isinstance(like, dict) and len(value) == len(like):
        if not value:
            return like
        traced: dict[str, Any] = {}
        for (key, item), (old, old_item) in zip(value.items(), like.items(), strict=True):
            is_same = key == old or type(old) is not TracedKey
            name = old if is_same else TracedKey.at(key, old.location, VARIABLE_LAYER)
            traced[name] = _trace(item, old_item, known, location)
        return traced
    if isinstance(value, list) and type(like) is TracedList and len(value) == len(like):
        items = (_trace(item, old, known, location) for item, old in zip(value, like, strict=True))
        return TracedList(items, like.location, like.layer, item_locations=like.item_locations)
    return with_tree(TracedScalar(None, location, VARIABLE_LAYER), value)


if TYPE_CHECKING:
    from jobgen.recognize.flux import FluxBuild


def fill_files(
    around: Surroundings, taken: Mapping[str, Taken], own: frozenset[str]
) -> tuple[list[FileEntry], dict[str, Taken], frozenset[str]]:
    """Return builds that fill in variables, what files they judge, and kustomizations that need no build of their own.

    `own` are the files that are linted.
    """
    builds = [each for each in _find_flux(around) if each.file in own or not own.isdisjoint(each.target.files)]
    filled = _describe(around, builds, taken, own)
    entries: list[FileEntry] = []
    seen: Counter[str] = Counter()
    for each in builds:
        name = f"{each.file}/{each.kustomization.name}"
        # Several builds of one name are numbered.
        seen[name] += 1
        path = name if seen[name] == 1 else f"{name} ({seen[name]})"
        flux = each if each.file in own else each.limit_to(own)
        entries.append(FileEntry(path, content=flux.read(), optional=True, build=flux))
    for made in find_builds(around.tree, around.objects - filled.keys()):
        path = f"{made.file}/{made.env_file}"
        entries.append(FileEntry(path, content=made.read(), optional=True, build=made))
        filled[made.file] = Taken(FILLED, f"checked in one build: {made.env_file} sets its variables")
    return entries, filled, frozenset(root for each in builds for root in each.target.roots)


def _find_flux(around: Surroundings) -> Sequence[FluxBuild]:
    if not around.tree.has_text(b"kustomize.toolkit.fluxcd.io"):
        return ()
    # Imported late: most folders have none.
    from jobgen.recognize.flux import find_builds

    return find_builds(around)


def _describe(
    around: Surroundings, builds: Sequence[FluxBuild], taken: Mapping[str, Taken], own: frozenset[str]
) -> dict[str, Taken]:
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
            filled[path] = Taken(FILLED, f"checked in {count}: {does}")
        elif path in taken and has_variables:
            filled[path] = taken[path]._replace(why=f"{taken[path].why}; {does}")
    return filled
