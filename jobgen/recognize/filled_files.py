"""Files whose variables are filled in with values of the repository: what is judged is the result."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, untraced, value_of, with_tree
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import FILLED, Taken
from jobgen.recognize.substituted import Variable, fill_leaf
from jobgen.recognize.tree import FileTree, Surroundings
from jobgen.repo.files import VARIABLE_LAYER, Built, BuiltObject, File, FileEntry
from jobgen.yamlio.read import read

_VARIABLE = lazy_pattern(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_LINE = lazy_pattern(r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)\Z", re.ASCII)
_QUOTED = lazy_pattern(r"([\"'])(.*?)\1[ \t]*(?:#.*)?\Z")
_COMMENT = lazy_pattern(r"(?:\A|[ \t]+)#.*\Z")
# What a shell or make does with a file of variables; the name of the file follows on the same line.
_LOADS = r"(?:\bsource\b|(?:^|[;&|]|\bthen\b)[ \t]*\.[ \t]|^-?include\b|\bexport\b|\bxargs\b|\bcat\b|\bdotenv\b)"
# The argument that limits which variables envsubst replaces.
_ONLY = lazy_pattern(rb"\benvsubst\b[ \t]+(?:\"([^\"\n]*)\"|'([^'\n]*)')")
_MAX_FILES = 500


class EnvBuild:
    """A manifest, after envsubst."""

    def __init__(self, file: str, manifest: File, env: File, known: Mapping[str, Variable]) -> None:
        self.file = file
        self._sources = (manifest, env)
        self._known = known

    @property
    def env_file(self) -> str:
        """The file that sets the variables."""
        return self._sources[1].path

    def read(self) -> bytes:
        """Return everything that its objects depend on."""
        names = repr(sorted(self._known)).encode()
        return b"\n".join((*(each.content for each in self._sources), names))

    def __call__(self) -> Built:
        """Fill in the variables."""
        content = self._sources[0].content
        before = read(content, self.file, traced=True)
        after = read(_replace(content.decode(), self._known).encode(), self.file)
        objects = [
            BuiltObject(data, _trace(data, like.data, self._known, like.location), self.file, position, like.location)
            for position, (data, like) in enumerate(
                zip((each.data for each in after.documents), before.documents, strict=False)
            )
        ]
        return _Built(objects, after.findings)

    def reports(self, file: str) -> bool:
        """Return True if findings in a file are reported."""
        return file == self.file

    def read_sources(self, finding: Finding) -> Iterator[File]:
        """Return the files that the values of a finding may come from."""
        del finding
        yield from self._sources


class _Built(NamedTuple):
    objects: Sequence[BuiltObject]
    findings: Sequence[Finding]


def find_builds(tree: FileTree, objects: Collection[str]) -> list[EnvBuild]:
    """Return the builds of the manifests whose variables an `.env` file sets."""
    found: list[EnvBuild] = []
    for path in sorted(objects):
        content = tree.read(path).content
        if b"$" in content and len(found) < _MAX_FILES:
            made = _make(tree, path)
            found += [made] if made else []
    return found


def _make(tree: FileTree, path: str) -> EnvBuild | None:
    script = tree.find_script(path, b"envsubst", posixpath.basename(path).encode("utf-8", "surrogateescape"))
    env = _find_env(tree, path, script) if script else None
    manifest = tree.read(path)
    if env is None or not _is_text(manifest.content) or not _is_text(env.content):
        return None
    text = manifest.content.decode()
    wanted = {match[1] or match[2] for match in _VARIABLE.finditer(text)}
    commands = [
        line
        for line in tree.read(script).content.split(b"\n")
        if posixpath.basename(path).encode("utf-8", "surrogateescape") in line
    ]
    only = next(filter(None, (_ONLY.search(line) for line in commands)), None)
    if only:
        named = (only[1] or only[2] or b"").decode("utf-8", "replace")
        wanted &= {match[1] or match[2] for match in _VARIABLE.finditer(named)}
    known = {name: each for name, each in read_env(env).items() if name in wanted}
    if not wanted or wanted - known.keys() or _sets_any(tree.read(script).content, wanted):
        return None
    before, after = (read(each.encode(), path).documents for each in (text, _replace(text, known)))
    is_list = any(str(value_of(each.data.get("kind", ""))).endswith("List") for each in before)
    return None if is_list or len(before) != len(after) else EnvBuild(path, manifest, env, known)


_MAX_LINE = 2_000


def _find_env(tree: FileTree, path: str, script: str) -> File | None:
    """Return the only `.env` file beside a manifest or a script that the script loads."""
    every = tree.read(script).content.decode("utf-8", "replace").split("\n")
    lines = [line for line in every if len(line) < _MAX_LINE]
    folders = dict.fromkeys(map(posixpath.dirname, (path, script)))
    names = dict.fromkeys(
        match
        for line in lines
        for match in re.findall(r"(?<![\w.-])[\w-]{0,60}(?:\.[\w-]{1,60}){0,3}?\.env\b(?!\.)", line)
    )
    loaded = [name for name in names if any(re.search(rf"{_LOADS}.*{re.escape(name)}", line) for line in lines)]
    found = [each for name in loaded for folder in folders if tree.exists(each := posixpath.join(folder, name))]
    file = tree.read(found[0]) if len(found) == 1 else None
    return file if file and file.finding is None else None


def _sets_any(script: bytes, names: Collection[str]) -> bool:
    """Return True if a script itself sets one of some variables."""
    every = "|".join(map(re.escape, sorted(names)))
    pattern = re.compile(rf"(?:^|[\s;])(?:{every})[?:+]?=|\bread\b.*\b(?:{every})\b")
    lines = script.decode("latin-1").split("\n")
    # A line that is too long to search may set anything.
    return any(len(line) > _MAX_LINE or pattern.search(line) for line in lines)


def read_env(file: File) -> dict[str, Variable]:
    """Return the variables of an `.env` file whose values are written there as they are."""
    found: dict[str, Variable] = {}
    for number, line in enumerate(file.content.decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.match(line) if len(line) < _MAX_LINE else None
        if match is None:
            continue
        found.pop(match[1], None)
        quoted = _QUOTED.match(match[2].strip())
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


def _replace(text: str, known: Mapping[str, Variable]) -> str:
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
        pairs = zip(value.items(), like.items(), strict=True)
        return {_trace_key(key, old): _trace(item, old_item, known, location) for (key, item), (old, old_item) in pairs}
    if isinstance(value, list) and type(like) is TracedList and len(value) == len(like):
        items = (_trace(item, old, known, location) for item, old in zip(value, like, strict=True))
        made = TracedList(items, like.location, like.layer)
        made.item_locations = like.item_locations
        return made
    return with_tree(TracedScalar(None, location, VARIABLE_LAYER), value)


def _trace_key(key: str, like: str) -> str:
    return like if key == like or type(like) is not TracedKey else TracedKey.at(key, like.location, VARIABLE_LAYER)


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
    for made in find_builds(around.tree, around.objects - filled.keys()):
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
