"""Verdicts, fingerprints, baselines, exit codes and rendered bytes stay what was recorded.

The files in contracts/ were first recorded at commit 902d7f5, and again after the changes that CHANGELOG.md lists.
Message texts are not part of them; everything else that a program may rely on is. `pytest --accept
tests/test_contracts.py` records them again, for an announced change; `pytest --accept` without the name of this file
does not.

Files of ../shared are known by a digest of their path, and objects by a digest of their identity: only verdicts are
recorded, never content.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from command import jobgen
from examples import EXAMPLES, cases
from sharedfiles import shared_folder
from transcripts import find_transcripts, read_transcript

from jobgen.model.builtin_rules import original_rule_name

ROOT = Path(__file__).parent.parent
CONTRACTS = Path(__file__).parent / "contracts"
TODAY = ("--today", "2025-01-31")
BASELINE = "known.json"
TREE = "rendered"
LOCK = "jobgen.lock.json"
TEXTS = {"text", "markdown", "message", "checked", "justification"}
"""Keys of JSON documents under which prose is found."""
SINGLES = 3
"""How many files of each exit code other than 0 are linted on their own."""
Verdicts = dict[str, list[str]]


class Outcome(NamedTuple):
    """What a command left behind: its exit code and what it printed."""

    code: int
    out: bytes


def run_commands(commands: Iterable[list[str]], folder: Path) -> list[Outcome]:
    """Run the commands one after another; they share a cache and start outside of any repository."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = [jobgen(elsewhere, *command, XDG_CACHE_HOME=str(folder / "cache")) for command in commands]
    return [Outcome(each.returncode, each.stdout) for each in done]


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """True if to record the contracts again: only if this file is named, so that they never change with other files."""
    is_named = any(Path(__file__).stem in argument for argument in request.config.args)
    return is_named and bool(request.config.getoption("--accept"))


def digest(*values: object) -> str:
    """Return a short digest of some JSON values."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def without_texts(value: Any) -> Any:
    """Return a JSON value with its prose blanked."""
    if isinstance(value, dict):
        blank = {key for key, each in value.items() if key in TEXTS and isinstance(each, str)}
        return {key: "" if key in blank else without_texts(each) for key, each in value.items()}
    return [without_texts(each) for each in value] if isinstance(value, list) else value


# One finding, one line


def finding_line(finding: dict[str, Any]) -> str:
    """Return everything that a finding of `--format json` says, except for its texts."""
    known = {"rule", "severity", "category", "file", "line", "column", "endLine", "endColumn", "pointer"}
    rest = {key: value for key, value in without_texts(finding).items() if key not in known}
    place = "{line}:{column}-{endLine}:{endColumn}".format(**finding)
    rule = original_rule_name(finding["rule"])
    return f"{rule} {finding['severity']} {finding['category']} {place} {finding['pointer'] or '-'} {digest(rest)}"


def result_line(result: dict[str, Any]) -> str:
    """Return the fingerprint of a SARIF result, and a digest of its structure."""
    rule = original_rule_name(result["ruleId"])
    rest = {key: value for key, value in without_texts(result).items() if key not in ("ruleId", "ruleIndex")}
    return f"{rule} sarif {result['partialFingerprints']['primaryLocationLineHash']} {digest(rest)}"


def sarif_run(outcome: Outcome) -> dict[str, Any]:
    [run] = json.loads(outcome.out)["runs"]
    return run


def result_file(result: dict[str, Any]) -> str:
    return unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


def is_new(result: dict[str, Any]) -> bool:
    """Return True if no baseline knows a SARIF result."""
    return "suppressions" not in result


def is_about_version(result: dict[str, Any]) -> bool:
    """Return True if a SARIF result says that the baseline has an old version, as the recorded ones do."""
    return (result["ruleId"], result["level"]) == ("stale-baseline", "note")


# Golden files


def read_sections(name: str) -> Verdicts:
    """Read a golden file: lines that begin a section, and the indented lines below each."""
    sections: Verdicts = {}
    for line in (CONTRACTS / name).read_text("utf-8").splitlines():
        if line.startswith(" "):
            sections[next(reversed(sections))].append(line.strip())
        else:
            sections[line] = []
    return sections


def write_sections(name: str, sections: Verdicts) -> None:
    lines = [line for title in sorted(sections) for line in (title, *(f"  {each}" for each in sections[title]))]
    (CONTRACTS / name).write_text("\n".join(lines) + "\n", "utf-8")


def recorded_rules() -> set[str]:
    return set(json.loads((CONTRACTS / "sarif.json").read_text("utf-8"))["rules"])


def of_recorded_rules(verdicts: Verdicts) -> Verdicts:
    """Leave out the findings of rules that did not exist yet: a new rule breaks no contract."""
    rules = recorded_rules()
    return {
        title: sorted(line for line in lines if line.partition(" ")[0] in rules) for title, lines in verdicts.items()
    }


def differences(recorded: Verdicts, found: Verdicts, paths: Mapping[str, str] | None = None) -> str:
    """Return what is different, section by section, under the path of each section if there are paths."""
    lines = []
    for title in sorted({*recorded, *found}):
        before, now = recorded.get(title, []), found.get(title, [])
        if before != now or (title in recorded) != (title in found):
            diff = difflib.unified_diff(before, now, n=0, lineterm="")
            lines += [(paths or {}).get(title, title), *list(diff)[2:]]
    return "\n".join(lines)


# Files of ../shared


@pytest.mark.parametrize("name", ["corpus", "admission-cases"])
def test_verdicts_of_shared_manifests_are_the_recorded_ones(name, tmp_path, accept):
    folder = shared_folder(name)
    paths = {digest(path): path for path in map(str, sorted(relative_paths(folder)))}
    if accept:
        accept_shared(name, folder, paths, tmp_path)
        return
    recorded = read_sections(f"{name}.txt")
    codes = {title.split()[0]: int(title.split()[1]) for title in recorded}
    groups = exit_code_groups({paths[key]: code for key, code in codes.items()})
    commands = [lint(folder, "."), lint(folder, ".", format_="sarif"), *(lint(folder, *group) for group, _ in groups)]
    found, sarif, *separate = run_commands(commands, tmp_path)
    lines = {digest(path): lines for path, lines in verdicts_by_file(found, sarif).items()}
    verdicts = {f"{key} {code}": lines.get(key, []) for key, code in codes.items()}

    names = {title: paths[title.split()[0]] for title in recorded}
    different = differences(recorded, of_recorded_rules(verdicts), names)
    assert not different, different
    assert [(group, outcome.code) for (group, _), outcome in zip(groups, separate, strict=True)] == groups
    assert found.code == sarif.code == max(codes.values())


def relative_paths(folder: Path) -> Iterator[Path]:
    return (path.relative_to(folder) for path in folder.rglob("*.yaml"))


def lint(folder: Path, *paths: str, format_: str = "json") -> list[str]:
    return ["-C", str(folder), "lint", *TODAY, "--format", format_, *paths]


def exit_code_groups(codes: Mapping[str, int]) -> list[tuple[list[str], int]]:
    """Return paths that are linted together, with the exit code: a tenth of those with 0 at once, some others alone."""
    groups = [([path for path, code in codes.items() if code == 0][::10], 0)]
    for code in sorted(set(codes.values()) - {0}):
        several = [path for path in codes if codes[path] == code]
        groups += [([path], code) for path in several[:: max(1, len(several) // SINGLES)]]
    return groups


def verdicts_by_file(found: Outcome, sarif: Outcome) -> Verdicts:
    verdicts: Verdicts = {}
    for finding in json.loads(found.out)["findings"]:
        verdicts.setdefault(finding["file"], []).append(finding_line(finding))
    for result in sarif_run(sarif)["results"]:
        verdicts.setdefault(result_file(result), []).append(result_line(result))
    return verdicts


def accept_shared(name: str, folder: Path, paths: Mapping[str, str], cache: Path) -> None:
    """Record the verdicts; each file is linted on its own for its exit code."""
    together = [lint(folder, "."), lint(folder, ".", format_="sarif")]
    found, sarif, *alone = run_commands([*together, *(lint(folder, path) for path in paths.values())], cache)
    verdicts = verdicts_by_file(found, sarif)
    sections = {
        f"{key} {outcome.code}": sorted(verdicts.get(path, []))
        for (key, path), outcome in zip(paths.items(), alone, strict=True)
    }
    write_sections(f"{name}.txt", sections)


# Small repositories: this one, the transcripts of render/, and the bad example of each rule


@pytest.fixture
def repositories(tmp_path):
    """Write the small repositories, and return their folders by name."""
    folders = {"own": tmp_path / "own"}
    for part in ("jobs", "overlays"):
        shutil.copytree(ROOT / part, folders["own"] / part)
    shutil.copy(ROOT / "jobgen.yaml", folders["own"])
    for path in find_transcripts("render"):
        folders[f"render/{path.stem}"] = folder = tmp_path / "render" / path.stem
        folder.mkdir(parents=True)
        read_transcript(path).write_repository(folder)
    for path in sorted(EXAMPLES.glob("*.yaml")):
        rule = original_rule_name(path.stem)
        folders[f"example/{rule}"] = folder = tmp_path / "example" / rule
        folder.mkdir(parents=True)
        next(case for case in cases(path) if case.expected).write(folder)
    return folders


def test_findings_of_small_repositories_are_the_recorded_ones_and_their_baselines_hold(
    repositories, tmp_path, accept, stress
):
    """A baseline of that time knows every finding, and no entry of it is stale."""
    if accept:
        accept_baselines(repositories, tmp_path)
    baselines = json.loads((CONTRACTS / "baselines.json").read_text("utf-8"))
    if not accept and stress == 1:  # all examples are linted by test_rules.py, too
        several = [name for name in baselines if name.startswith("example/")]
        baselines = {name: baselines[name] for name in baselines if name not in several or name in several[::20]}
    for name, entries in baselines.items():
        (repositories[name] / BASELINE).write_text(json.dumps({"version": 1, "findings": entries}))
    options = ("--baseline", BASELINE, "--show-suppressed", *TODAY, "--format", "sarif", "--no-cache")
    commands = [["-C", str(repositories[name]), "lint", *options] for name in baselines]
    outcomes = dict(zip(baselines, run_commands(commands, tmp_path), strict=True))
    results = {
        name: [each for each in sarif_run(outcome)["results"] if not is_about_version(each)]
        for name, outcome in outcomes.items()
    }
    found = {name: sorted(map(result_line, several)) for name, several in results.items()}
    if accept:
        write_sections("repositories.txt", of_recorded_rules(found))
        return
    unknown = {
        name: [f"{original_rule_name(each['ruleId'])} {each['message']['text']}" for each in several if is_new(each)]
        for name, several in results.items()
    }

    assert {name: lines for name, lines in of_recorded_rules(unknown).items() if lines} == {}
    assert {name: outcome.code for name, outcome in outcomes.items() if outcome.code} == {}
    recorded = {name: lines for name, lines in read_sections("repositories.txt").items() if name in baselines}
    different = differences(recorded, of_recorded_rules(found))
    assert not different, different


def accept_baselines(repositories: Mapping[str, Path], cache: Path) -> None:
    """Record a baseline of each repository that can be linted and has findings."""
    options = ("--baseline", BASELINE, "--write-baseline", *TODAY, "--no-cache")
    run_commands([["-C", str(folder), "lint", *options] for folder in repositories.values()], cache)
    baselines = {}
    for name, folder in repositories.items():
        if (folder / BASELINE).exists():
            entries = json.loads((folder / BASELINE).read_text("utf-8"))["findings"]
            baselines |= {name: entries} if entries else {}
            (folder / BASELINE).unlink()
    lists = [
        f"{json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in entries) + "\n]"
        for name, entries in baselines.items()
    ]
    (CONTRACTS / "baselines.json").write_text("{\n" + ",\n".join(lists) + "\n}\n", "utf-8")


def test_rendered_trees_have_the_recorded_bytes(repositories, tmp_path, accept):
    rendered = {name: folder for name, folder in repositories.items() if not name.startswith("example/")}
    environments = [word for path in sorted((ROOT / "overlays").iterdir()) for word in ("-e", path.name)]
    commands = [
        ["-C", str(folder), "render", *TODAY, "-o", TREE, "--no-cache", *(environments if name == "own" else ())]
        for name, folder in rendered.items()
    ]
    outcomes = run_commands(commands, tmp_path)
    found = {
        f"{name} {outcome.code}": sorted(tree_lines(rendered[name] / TREE))
        for name, outcome in zip(rendered, outcomes, strict=True)
    }
    if accept:
        write_sections("rendered.txt", found)
    recorded = read_sections("rendered.txt")
    names = {title.split()[0] for title in recorded}

    different = differences(recorded, {title: lines for title, lines in found.items() if title.split()[0] in names})
    assert not different, different


def tree_lines(tree: Path) -> Iterator[str]:
    """Yield each file of a rendered tree with a digest of its bytes; a lock without the version of jobgen."""
    for path in tree.rglob("*"):
        if path.name == LOCK:
            lock = json.loads(path.read_text("utf-8"))
            yield f"{path.relative_to(tree)} {digest({key: lock[key] for key in lock if key != 'tool'})}"
        elif path.is_file():
            yield f"{path.relative_to(tree)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


# What surrounds the findings


def test_reports_keep_their_structure_and_rules_their_attributes(repositories, tmp_path, accept):
    commands = [lint(repositories["own"]), lint(repositories["own"], format_="sarif")]
    found, sarif = run_commands(commands, tmp_path)
    report, run = json.loads(found.out), sarif_run(sarif)
    driver, finding = run["tool"]["driver"], report["findings"][0]
    structure = {
        "json": {"report": sorted(report), "summary": sorted(report["summary"]), "finding": sorted(finding)},
        "sarif": without_texts({**run, "tool": sorted(driver), "results": []}),
        "rules": {original_rule_name(rule["id"]): rule_attributes(rule) for rule in driver["rules"]},
    }
    if accept:
        (CONTRACTS / "sarif.json").write_text(json.dumps(structure, indent=1, sort_keys=True) + "\n", "utf-8")
    recorded = json.loads((CONTRACTS / "sarif.json").read_text("utf-8"))

    assert {name: structure["rules"].get(name) for name in recorded["rules"]} == recorded["rules"]
    assert (structure["json"], structure["sarif"]) == (recorded["json"], recorded["sarif"])


def rule_attributes(rule: dict[str, Any]) -> str:
    """Return what SARIF says about a rule except for its texts and the address of its page."""
    apart = ("id", "name", "properties", "helpUri")
    rest = {key: value for key, value in without_texts(rule).items() if key not in apart}
    tags, *others = rule["properties"].pop("tags"), *sorted(rule["properties"].items())
    return f"{' '.join(tags)} {' '.join(f'{key}={value}' for key, value in others)} {digest(rest)}"
