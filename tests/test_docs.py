"""Documentation: commands print what the pages show, and examples are valid."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import run_jobgen_text
from findings import text_without_infos
from walkthrough import MARK

import jobgen
from jobgen.rendering import config
from jobgen.repo.layout import own_layers
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
FOLLOWED = {page for page in PAGES if MARK in page.read_text()}
"""Pages whose commands run in order, in a repository of their own: test_walkthroughs.py."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FORMATS = {
    "TrainingJob": "trainingjob",
    "Overlay": "overlay",
    "Team": "team",
    "JobTests": "jobtests",
    "Defects": "defects",
}
FRAMEWORKS = config.load_frameworks(own_layers(Path(__file__).parent.parent))


def blocks(language: str) -> list[tuple[Path, str]]:
    return [(page, text) for page in PAGES for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def commands() -> list[tuple[str, str, str]]:
    """Every `$ command` of the pages, with the output shown below it."""
    return [
        (page.name, *entry.partition("\n")[::2])
        for page, text in blocks("console")
        if page not in FOLLOWED
        for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    ]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("repository")
    for name in ("jobs", "overlays", "schemas"):
        shutil.copytree(ROOT / name, copy / name)
    shutil.copy(ROOT / "jobgen.yaml", copy)
    return copy


@pytest.mark.parametrize(("page", "command", "shown"), commands())
def test_documented_command_output(page, command, shown, repository):
    words = shlex.split(command)
    done = run_jobgen_text(repository, *words[1:])
    printed = done.stdout + done.stderr
    if ": info: " not in shown:
        printed = text_without_infos(printed)

    assert words[0] == "jobgen"
    assert done.returncode == 0, done.stderr
    start, elided, end = f"\n{shown}".partition("\n...\n")
    assert f"\n{printed}".startswith(start)
    assert printed.endswith(end)
    assert elided or printed == shown


@pytest.mark.parametrize(("page", "text"), [each for each in blocks("yaml") if not each[1].startswith("# charts/")])
def test_documented_examples_match_their_format(page, text):
    source = read(text.encode(), page.name)

    assert source.findings == ()
    for document in source.documents:
        if document.data.get("apiVersion") == "jobgen.dev/v1":
            assert config.find_errors(document.data, FORMATS[document.data["kind"]], FRAMEWORKS) == []
        elif "apiVersion" in document.data and "metadata" not in document.data:
            assert config.find_errors(document.data, "kind") == []


def test_recipes_render_and_pass_lint(tmp_path):
    documents = [part for page, text in blocks("yaml") if page.name == "recipes.md" for part in text.split("---\n")]
    for number, text in enumerate(documents):
        path = tmp_path / ("overlays/prod/overlay.yaml" if "kind: Overlay" in text else f"jobs/{number}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "jobgen.yaml").touch()

    linted, rendered = jobgen.lint(tmp_path), jobgen.render(tmp_path, environments=["prod"])

    assert [finding for finding in linted.findings if finding.severity is not jobgen.Severity.INFO] == []
    jobs = [made for made in rendered.objects if made.identity.kind == "PyTorchJob"]
    assert len(jobs) == sum("framework: pytorch" in text for text in documents)
    # All but two: one streams, and the data of the other is in a claim.
    assert sum("initContainers:" in made.text for made in jobs) == len(jobs) - 2


def test_the_first_page_shows_a_job_of_this_repository():
    _, text = blocks("yaml")[[page.name for page, _ in blocks("yaml")].index("index.md")]
    path = re.match(r"# (\S+)\n", text)[1]

    assert read(text.encode(), "").documents[0].data == read((ROOT / path).read_bytes(), "").documents[0].data


def test_every_page_is_reachable_from_the_readme():
    index = (ROOT / "docs/index.md").read_text()
    chinese = (ROOT / "docs/zh/index.md").read_text()
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")} - {"index.md"}
    translated = {name for name in pages if name.startswith("zh/")} - {"zh/index.md"}
    table = (ROOT / "docs/rules.md").read_text()

    assert [name for name in pages if name.startswith("rules/") and f"({name})" not in table] == []
    assert "(docs/index.md)" in (ROOT / "README.md").read_text()
    assert [
        name for name in sorted(pages - translated) if not name.startswith("rules/") and f"({name})" not in index
    ] == []
    assert [name for name in sorted(translated) if f"({name.removeprefix('zh/')})" not in chinese] == []


@pytest.mark.parametrize("page", ["rules", "defects"])
def test_a_generated_page_is_up_to_date(page):
    done = subprocess.run(
        [sys.executable, ROOT / f"docs/build_{page}.py", "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_tables_of_framework_fields_are_up_to_date(capsys, monkeypatch):
    builder = runpy.run_path(str(ROOT / "docs/build_jobs.py"))
    monkeypatch.setattr(sys, "argv", ["build_jobs.py", "--check"])

    assert (builder["main"](), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("name", ["build_api.py", "build_commands.py", "build_fields.py", "build_incidents.py"])
def test_generated_pages_are_up_to_date(name, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    builder = runpy.run_path(str(ROOT / "docs" / name))
    monkeypatch.setattr(sys, "argv", [name, "--check"])

    assert (builder["main"](), capsys.readouterr().err) == (0, "")


def test_a_command_without_a_section_is_noticed():
    builder = runpy.run_path(str(ROOT / "docs/build_commands.py"))
    page = (ROOT / "docs/commands.md").read_text()

    assert builder["fill_page"](page.replace("## jobgen lint\n", "## jobgen check\n"))[1] == ["lint"]
    assert builder["fill_page"](page.replace("| `--fix` |", "| `--repair` |"))[0] == page


def test_pages_name_every_field_of_their_format():
    schemas = config.complete_schemas(())
    job, spec = schemas["trainingjob_v1.json"]["$defs"], schemas["overlay_v1.json"]["properties"]["spec"]["properties"]
    named = {
        "jobs.md": {**job["fields"]["properties"], **job["role"]["properties"]},
        "overlays.md": {
            **spec,
            **spec["cluster"]["properties"],
            **schemas["overlay_v1.json"]["$defs"]["match"]["properties"],
        },
        "lint.md": schemas["settings_v1.json"]["properties"],
        "teams.md": {
            **schemas["team_v1.json"]["$defs"]["team"]["properties"],
            **schemas["team_v1.json"]["$defs"]["budget"]["properties"],
        },
    }
    pages = {name: (ROOT / "docs" / name).read_text() for name in named}

    assert [(page, name) for page, names in named.items() for name in names if f"`{name}`" not in pages[page]] == []


def test_documented_settings_are_valid(tmp_path):
    for page, text in blocks("yaml"):
        if text.startswith("rules:"):
            (tmp_path / "jobgen.yaml").write_text(text)

            assert config.load_own(tmp_path).findings == (), page


def test_code_spans_have_no_escaped_characters():
    """Markdown shows them as they are written."""
    pages = {path: re.sub(r"(?ms)^```.*?^```", "", path.read_text("utf-8")) for path in (ROOT / "docs").rglob("*.md")}
    found = {path.name: re.findall(r"`[^`\n]*&(?:lt|gt|amp);[^`\n]*`", text) for path, text in pages.items()}
    assert {name: spans for name, spans in found.items() if spans} == {}


def test_completion_is_turned_on_by_its_command_only():
    assert [path.name for path in (ROOT / "docs").rglob("*.md") if "_JOBGEN_COMPLETE" in path.read_text("utf-8")] == []
