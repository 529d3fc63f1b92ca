"""Measure a repository of many teams: lint, render, diff, `--since`, teams and tests, in CPU seconds.

    python benchmarks/teams.py [--teams 40] [--jobs 25] [--environments 4] [--packs] [--repeat 3] [--folder FOLDER]

Each team has a folder of varied jobs, its own namespaces, queue, service accounts, budget, labels and defaults. Every
20th job names the queue and the service account of others. The same repository without teams is measured beside it:
patches select the jobs by their paths instead. With `--packs`, `lint` is also measured with all packs of policies. With
`--folder`, the repositories stay there for other runs.

CPU seconds are those of all processes, the least of several runs. The ratio is to the time in which `yaml.CSafeLoader`
reads the files of all jobs in the same run, so it does not depend on the speed of the machine.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from fleet import BASE, GPU, NAMES, copy_specs, import_specs, write_file
from timing import JOBGEN, compile_modules, run

ENVIRONMENT = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: {name}}}
spec:
  extends: [gpu]
  defaults:
    - merge: {{labels: {{stage: {name}}}}}
    - match: {first}
      merge: {{nodeSelector: {{pool: first}}}}
  patches:
{patches}"""
PATCH = """\
    - match: {match}
      manifest: {{metadata: {{namespace: {team}-{name}}}}}
"""
TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {{name: {team}}}
spec:
  folders: [jobs/{team}]
  owners: ["@example/{team}"]
  labels: {{team: {team}, cost-center: "{number}"}}
  namespaces: [{team}-*]
  queues: [{team}]
  serviceAccounts: [{team}-*]
  budget: {{gpus: 100000, jobs: 1000, replicas: 100000}}
  defaults: {{env: {{TEAM: {team}}}}}
"""
TEST = """\
  - name: the namespace of {job}
    jobs: [{job}]
    expect:
      values: {{metadata.namespace: {{matches: team-*}}, kind: {{matches: "*Job"}}}}
"""
TESTED = 125
"""How many jobs have a test. In four environments, with two values each, these are 1,000 assertions."""
TRESPASSES = 20
"""Every how manieth job names the queue and the service account of others."""
_OWN = re.compile(r"""\b(queue|queueName|serviceAccount|queue-name["']?): ["']?[\w-]+["']?""")
HEAD = "apiVersion: jobgen.dev/v1\nkind: JobTests\nspec:\n"
PACKS = "policies: [pss-baseline, pss-restricted, supply-chain, cost, kueue]\n"
_NAME = re.compile(r"^metadata:.*?\bname: *([\w-]+)", re.MULTILINE | re.DOTALL)


def write_teams(folder: Path, teams: int, jobs: int, environments: int, *, owned: bool = True) -> None:
    """Write a repository of teams and commit it; without `owned` the same jobs, of which no team is known."""
    names = [f"team-{number:02d}" for number in range(teams)]
    places = [NAMES[number] if number < len(NAMES) else f"env-{number}" for number in range(environments)]
    select = "{{teams: [{}]}}".format if owned else "{{paths: [jobs/{}/**]}}".format
    for name, text in {"base": BASE, "gpu": GPU}.items():
        write_file(folder / "overlays" / name / "overlay.yaml", text)
    for place in places:
        patches = "".join(PATCH.format(team=team, name=place, match=select(team)) for team in names)
        text = ENVIRONMENT.format(name=place, patches=patches, first=select("team-0*"))
        write_file(folder / "overlays" / place / "overlay.yaml", text)
    write_file(folder / "jobgen.yaml", "")
    texts = list(copy_specs(import_specs(min(150, teams * jobs), 0), teams * jobs))
    for number, team in enumerate(names):
        if owned:
            write_file(folder / "teams" / f"{team}.yaml", TEAM.format(team=team, number=number))
        for place, text in enumerate(texts[number::teams]):
            own = text if (number + place) % TRESPASSES == 0 else _name_own(text, team)
            write_file(folder / "jobs" / team / f"job-{place:03d}.yaml", own)
    tested = (found[1] for found in map(_NAME.search, texts[:TESTED]) if found)
    write_file(folder / "tests" / "teams.yaml", HEAD + "".join(TEST.format(job=job) for job in tested))
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Add jobs")):
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


def _name_own(text: str, team: str) -> str:
    """A job with the queue and the service account of its team."""
    return _OWN.sub(lambda found: f"{found[1]}: {team}{'-trainer' if 'Account' in found[1] else ''}", text)


def change_files(folder: Path, count: int) -> None:
    """Change the image of the first jobs, each of another team, and of no other job."""
    subprocess.run(["git", "checkout", "-q", "."], cwd=folder, check=True)
    for path in sorted(folder.glob("jobs/*/job-000.yaml"))[:count]:
        path.write_text(path.read_text("utf-8").replace("image: ", "image: mirror.example.com/", 1), "utf-8")


def read_files(folder: Path) -> float:
    """Return the CPU seconds in which PyYAML reads the files of all jobs."""
    started = process_time()
    for path in folder.glob("jobs/*/*.yaml"):
        yaml.load(path.read_bytes(), yaml.CSafeLoader)
    return process_time() - started


class Bench(NamedTuple):
    """The folder of caches, the number of runs, and the seconds of the peer."""

    home: Path
    repeat: int
    peer: float

    def show(self, name: str, folder: Path, *arguments: str, cold: bool = False) -> None:
        """Print the CPU seconds of a command. If it is cold, it has an empty cache, and runs once."""
        runs = []
        for _ in range(1 if cold else self.repeat):
            with tempfile.TemporaryDirectory() as empty:
                cache = Path(empty) if cold else self.home / folder.name
                # Findings do not matter here.
                runs.append(run(*JOBGEN, *arguments, folder=folder, cache=cache, code=None))
        cpu, most = min(each.cpu for each in runs), max(each.total for each in runs)
        print(f"{name:44}{cpu:8.2f} s{cpu / self.peer:8.1f}x{most / 1e6:7.0f} MB", flush=True)


def measure(bench: Bench, teams: Path, others: Path, *, with_packs: bool) -> None:
    """Print what the commands need."""
    print(f"{'':44}{'CPU':>10}{'ratio':>9}{'memory':>10}")
    print(f"{'yaml.CSafeLoader, the files of all jobs':44}{bench.peer:8.2f} s{1:8.1f}x")
    for label, folder in (("", teams), (", no teams", others)):
        change_files(folder, 0)
        bench.show(f"render{label}", folder, "render", "-o", str(bench.home / f"rendered-{folder.name}"))
        bench.show(f"lint, empty cache{label}", folder, "lint", cold=True)
        bench.show(f"lint, first and again{label}", folder, "lint")
        for count in (1, 10):
            change_files(folder, count)
            bench.show(f"lint --since HEAD, files changed: {count}{label}", folder, "lint", "--since", "HEAD")
            bench.show(f"diff HEAD, files changed: {count}{label}", folder, "diff", "HEAD")
        bench.show(f"lint --since HEAD, 10 changed, empty cache{label}", folder, "lint", "--since", "HEAD", cold=True)
        bench.show(f"test, 1,000 assertions{label}", folder, "test")
    bench.show("teams", teams, "teams")
    if with_packs:
        (teams / "jobgen.yaml").write_text(PACKS, "utf-8")
        bench.show("lint, empty cache, all packs", teams, "lint", cold=True)
        change_files(teams, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teams", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=25)
    parser.add_argument("--environments", type=int, default=4)
    parser.add_argument("--packs", action="store_true", help="measure all packs of policies too, which takes long")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="of the repositories; they are written if they do not exist")
    options = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as home:
        folder = (options.folder or Path(home)).resolve()
        for name, owned in (("teams", True), ("others", False)):
            if not (folder / name).exists():
                write_teams(folder / name, options.teams, options.jobs, options.environments, owned=owned)
        bench = Bench(Path(home), options.repeat, min(read_files(folder / "teams") for _ in range(options.repeat)))
        measure(bench, folder / "teams", folder / "others", with_packs=options.packs)


if __name__ == "__main__":
    main()
