"""Measure a repository of many teams: lint, render, diff, `--since`, teams and tests.

    python benchmarks/teams.py [--teams 40] [--jobs 25] [--environments 4] [--folder FOLDER]

Each team has a folder of varied jobs, its own namespaces, queue, service accounts, budget, labels and defaults. With
`--folder`, the repository stays there for other runs. Wall time is that of all cores; on a busy machine, compare CPU
seconds, or ratios to `render`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

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
    - match: {{teams: [team-0*]}}
      merge: {{nodeSelector: {{pool: first}}}}
  patches:
{patches}"""
PATCH = """\
    - match: {{teams: [{team}]}}
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
  - name: labels, {number}
    jobs: ["*{number}"]
    expect:
      values: {{metadata.labels.team: {{matches: team-*}}, kind: {{present: true}}}}
"""
TRESPASSES = 20
"""Every how manieth job names the queue and the service account of others."""
_OWN = re.compile(r"^( *)(queue|serviceAccount): [\w-]+", re.MULTILINE)
_NAMES = {"queue": "", "serviceAccount": "-trainer"}
HEAD = "apiVersion: jobgen.dev/v1\nkind: JobTests\nspec:\n"
COMMANDS = {
    "render": ("render", "-o", "{folder}/.rendered", "--allow-mass-delete"),
    "lint, empty cache": ("lint",),
    "lint again": ("lint",),
    "lint --since HEAD, 10 files": ("lint", "--since", "HEAD"),
    "diff HEAD, 10 files": ("diff", "HEAD"),
    "teams": ("teams",),
    "test": ("test",),
}


def write_teams(folder: Path, teams: int, jobs: int, environments: int) -> None:
    """Write a repository of teams, and commit it."""
    names = [f"team-{number:02d}" for number in range(teams)]
    places = [NAMES[number] if number < len(NAMES) else f"env-{number}" for number in range(environments)]
    for name, text in {"base": BASE, "gpu": GPU}.items():
        write_file(folder / "overlays" / name / "overlay.yaml", text)
    for place in places:
        patches = "".join(PATCH.format(team=team, name=place) for team in names)
        write_file(folder / "overlays" / place / "overlay.yaml", ENVIRONMENT.format(name=place, patches=patches))
    write_file(folder / "jobgen.yaml", "")
    texts = list(copy_specs(import_specs(min(150, teams * jobs), 0), teams * jobs))
    for number, team in enumerate(names):
        write_file(folder / "teams" / f"{team}.yaml", TEAM.format(team=team, number=number))
        for place, text in enumerate(texts[number::teams]):
            owned = text if (number + place) % TRESPASSES == 0 else _name_own(text, team)
            write_file(folder / "jobs" / team / f"job-{place:03d}.yaml", owned)
    tests = (TEST.format(number=number) for number in range(10))
    write_file(folder / "tests" / "teams.yaml", HEAD + "".join(tests))
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Add jobs")):
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)
    for team in names[:10]:
        path = folder / "jobs" / team / "job-000.yaml"
        path.write_text(path.read_text("utf-8").replace("image: ", "image: mirror.example.com/", 1), "utf-8")


def _name_own(text: str, team: str) -> str:
    """A job with the queue and the service account of its team."""
    return _OWN.sub(lambda found: f"{found[1]}{found[2]}: {team}{_NAMES[found[2]]}", text)


def measure(folder: Path, cache: Path) -> None:
    """Print what the commands need."""
    print(f"{'':30}{'wall':>10}{'CPU':>10}{'memory':>10}")
    for name, arguments in COMMANDS.items():
        command = [argument.format(folder=folder) for argument in arguments]
        # Findings do not matter here.
        each = run(*JOBGEN, *command, folder=folder, cache=cache, code=None)
        print(f"{name:30}{each.seconds:8.2f} s{each.cpu:8.2f} s{each.total / 1e6:7.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teams", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=25)
    parser.add_argument("--environments", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="of the repository; it is written if it does not exist")
    options = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as home:
        folder = (options.folder or Path(home, "teams")).resolve()
        if not folder.exists():
            write_teams(folder, options.teams, options.jobs, options.environments)
        measure(folder, Path(home, "cache"))


if __name__ == "__main__":
    main()
