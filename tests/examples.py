"""Cases of a rule: `# case: title` begins a small repository of its own; each document becomes a file of it.

Documents of `kind: Overlay` go to overlays/<name>/, a document without apiVersion is jobgen.yaml, others go to jobs/.
The lines of a document keep their numbers, so that `# expect: rule` stands where the finding is to stand.

`# file: path` begins a file of that name instead; its text is taken as it is, separators and all. A case of which all
files have names, none of them that of a jobs repository, is a folder of manifests. Files in `old/` and `new/` are two
states of a jobs repository, and the findings those of the change.
"""

import re
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parent.parent / "jobgen/data/examples"
_OWN = {"jobgen.yaml", "defects", "jobs", "overlays", "policies", "runtimes", "schemas", "teams"}
_EXPECT = re.compile(r"# expect: ([\w-]+(?:, [\w-]+)*)")


class Case(NamedTuple):
    title: str
    first: int
    lines: list[str]

    @property
    def expected(self) -> list[tuple[int, str]]:
        return [
            (number, rule)
            for number, line in enumerate(self.lines, self.first)
            for found in _EXPECT.findall(line)
            for rule in found.split(", ")
        ]

    @property
    def is_repository(self) -> bool:
        """True if it has a file that only jobs repositories have; other cases are folders of manifests."""
        names = [named.partition("/")[0] for _, _, named in _documents(self.lines)]
        return not all(names) or not _OWN.isdisjoint(names)

    def write(self, folder: Path) -> None:
        """The case as a repository, or as a folder of manifests."""
        for number, (start, lines, named) in enumerate(_documents(self.lines)):
            text = "\n" * (self.first + start - 1) + "\n".join(lines) + "\n"
            path = folder / (named or _path(lines, number))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if self.is_repository:
            (folder / "jobs").mkdir(exist_ok=True)


def cases(path: Path) -> list[Case]:
    """The cases of a file; one without titles is a single case."""
    found: list[Case] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("# case: "):
            found.append(Case(line.removeprefix("# case: "), number + 1, []))
        elif found:
            found[-1].lines.append(line)
    return found


def _documents(lines: list[str]) -> list[tuple[int, list[str], str]]:
    """The files of a case: the line that each begins on, its lines, and its name if it has one."""
    found: list[tuple[int, list[str], str]] = [(0, [], "")]
    for number, line in enumerate(lines):
        if line.startswith("# file: "):
            found.append((number + 1, [], line.removeprefix("# file: ")))
        elif line == "---" and not found[-1][2]:
            found.append((number + 1, [], ""))
        else:
            found[-1][1].append(line)
    return [entry for entry in found if entry[1]]


def _path(lines: list[str], number: int) -> str:
    text = "\n".join(lines)
    if "\nkind: Overlay" in text:
        name = re.search(r"^metadata: *\{name: *([\w-]+)\}|^  name: *([\w-]+)", text, re.MULTILINE)
        return f"overlays/{name[1] or name[2]}/overlay-{number}.yaml"
    return f"jobs/job-{number}.yaml" if "apiVersion:" in text else "jobgen.yaml"
