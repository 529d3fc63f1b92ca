"""Errors name the page that helps, rules are links on terminals, and long explanations are shown in a pager."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from jobgenprocess import name_program, run_jobgen, run_jobgen_text

from jobgen.check.rule_docs import all_rule_docs, policy_docs
from jobgen.cli import pages
from jobgen.cli.commands.explain import find_pager
from jobgen.model.features import list_command_modules
from jobgen.repo.known_rules import list_known_rules

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec: {framework: pytorch, image: registry.example.com/bert:latest, roles: {master: {}}}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    (tmp_path / "jobgen.yaml").write_text("")
    return tmp_path


def list_anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def list_pages() -> set[str]:
    commands = {pages.find_page(name, "") for name in [*list_command_modules(), ""]}
    return {*commands, *(pages.find_page("lint", message) for message in MESSAGES)} - {"", pages.ISSUES}


MESSAGES = [re.sub(r"\(\?:|\)|\\", "", pattern).partition("|")[0] for pattern, _ in pages._MESSAGES]


def test_the_site_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)
    assert project["Documentation"].replace("/tree/", "/blob/") == pages.SITE
    assert project["Issues"] == pages.ISSUES
    assert pages.SITE.startswith(site["repo_url"])


@pytest.mark.parametrize("address", sorted(list_pages()))
def test_every_page_and_section_exists(address: str) -> None:
    page, _, section = address.removeprefix(f"{pages.SITE}/").partition("#")
    assert (ROOT / "docs" / page).is_file()
    assert not section or section in list_anchors(page)


def test_every_rule_has_a_section() -> None:
    link = pages.link_rules({"TERM": "xterm"}, is_terminal=True)
    names = list_known_rules(None)
    defects = list_anchors("defects.md")
    links = [link(name).removeprefix(f"{pages.SITE}/").partition("#") for name in names]
    assert [page for page, _, _ in links if not (ROOT / "docs" / page).is_file()] == []
    assert [name for page, _, name in links if page == "defects.md" and name not in defects] == []
    assert link("own-policy") == ""


@pytest.mark.parametrize(
    ("arguments", "code", "page"),
    [
        (["render", "nothing"], 3, "commands.md#jobgen-render"),
        (["-C", "/", "render"], 2, "tutorial.md"),
        (["lint", "--nothing"], 2, "lint.md"),
        (["lint", "--since", "nothing"], 2, "diff.md"),
        (["lint", "--shard", "1/2"], 2, "ci.md#large-repositories"),
        (["merge-reports", "1.json"], 2, "ci.md#large-repositories"),
        (["render", "-e", "nothing"], 2, "overlays.md"),
        (["schema", "print", "Nothing"], 3, "kinds.md"),
        (["-C", "jobs", "nothing"], 2, "commands.md"),
        (["test", "nothing"], 3, "tests.md"),
    ],
)
def test_an_error_ends_with_its_page(repository: Path, arguments: list[str], code: int, page: str) -> None:
    done = run_jobgen_text(repository, *arguments)
    *_, message, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (code, "")
    assert message.startswith("jobgen: ")
    assert last == f"see: {pages.SITE}/{page}"


def test_errors_in_settings_name_the_settings(repository: Path) -> None:
    (repository / "jobgen.yaml").write_text("unknown: 1\n")
    done = run_jobgen_text(repository, "render")
    assert done.stderr.endswith(f"see: {pages.SITE}/lint.md#settings\n")


@pytest.mark.parametrize("arguments", [["lint"], ["--help"], ["cmp", "generate"], ["fn", "generate"], []])
def test_findings_help_and_plugins_stay_as_they_are(repository: Path, arguments: list[str]) -> None:
    (repository / "jobs/bert.yaml").write_text(JOB.replace("roles", "rolls"))
    done = run_jobgen_text(repository, *arguments)
    assert "see: " not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        (["lnt"], "; did you mean `lint`?"),
        (["policy", "tset"], "; did you mean `test`?"),
        (["zzzz"], "; `jobgen --help` lists the commands"),
    ],
)
def test_a_misspelled_command_is_suggested(repository: Path, word: list[str], hint: str) -> None:
    done = run_jobgen_text(repository, *word)
    assert done.returncode == 2
    assert done.stderr.startswith(f"jobgen: there is no command `{word[-1]}`{hint}\n")


def test_a_misspelled_option_is_suggested(repository: Path) -> None:
    assert "--format" in run_jobgen_text(repository, "lint", "--formt", "json").stderr


class Terminal:
    """A command on a terminal of 24 lines."""

    def __init__(self, folder: Path, *arguments: str, program: Sequence[str] = (), **environ: str) -> None:
        self.controller, terminal = pty.openpty()
        subprocess.run(["stty", "rows", "24", "cols", "200"], stdin=terminal, check=True)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
        self.process = subprocess.Popen(
            [*(program or name_program()), *arguments],
            cwd=folder,
            env={**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environ},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # noqa: PLW1509 -- its terminal
        )
        os.close(terminal)
        self.shown = ""

    def read(self, until: str = "", seconds: float = 60) -> str:
        """Return what is shown until a text is, or until the end."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (until and until in self.shown):
            if select.select([self.controller], (), (), 0.05)[0]:
                try:
                    self.shown += os.read(self.controller, 4096).decode(errors="replace")
                except OSError:
                    break
        return self.shown

    def finish(self) -> int:
        self.read()
        code = self.process.wait(60)
        os.close(self.controller)
        return code


LINK = f"\x1b]8;;{pages.SITE}/rules/mutable-image-tag.md\x1b\\[mutable-image-tag]\x1b]8;;\x1b\\"


def test_rules_are_links_on_a_terminal(repository: Path) -> None:
    terminal = Terminal(repository, "lint")
    terminal.finish()
    assert f"\x1b[2m{LINK}\x1b[0m" in terminal.shown


@pytest.mark.parametrize(
    ("environ", "colors", "links"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, True),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_HYPERLINK": "0"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "linux"}, True, False),
        ({"TERM": "screen-256color"}, True, False),
        ({"VTE_VERSION": "4205"}, True, False),
        ({"VTE_VERSION": "6003"}, True, True),
        ({"CI": "true"}, True, False),
        ({"CI": "true", "FORCE_HYPERLINK": "1"}, True, True),
    ],
)
def test_variables_decide_about_colors_and_links(
    repository: Path, environ: dict[str, str], colors: bool, links: bool
) -> None:
    terminal = Terminal(repository, "lint", **environ)
    terminal.finish()
    assert ("\x1b[1m" in terminal.shown, "\x1b]8;;" in terminal.shown) == (colors, links)
    assert "mutable-image-tag" in terminal.shown


def test_a_pipe_has_no_links(repository: Path) -> None:
    assert "\x1b" not in run_jobgen_text(repository, "lint").stdout


@pytest.mark.parametrize(
    ("environ", "colors"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
@pytest.mark.parametrize("command", ["lint", "doctor"])
def test_a_pipe_has_colors_if_they_are_forced(
    repository: Path, command: str, environ: dict[str, str], colors: bool
) -> None:
    done = run_jobgen(repository, command, env={**os.environ, **environ})
    assert (b"\x1b[" in done.stdout) == colors


def test_sarif_has_the_page_of_each_shipped_rule(repository: Path) -> None:
    (repository / "policies").mkdir()
    (repository / "policies/own.yaml").write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: own-policy}\n"
        "spec: {matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'],"
        " resources: ['*']}]}, validations: [{expression: 'true'}]}\n"
    )
    [run] = json.loads(run_jobgen_text(repository, "lint", "--format", "sarif").stdout)["runs"]
    addresses = {rule["id"]: rule.get("helpUri") for rule in run["tool"]["driver"]["rules"]}

    assert addresses.pop("own-policy") is None
    assert len(addresses) > 200
    assert addresses == {name: f"{pages.SITE}/rules/{name}.md" for name in addresses}
    assert [name for name in addresses if not (ROOT / f"docs/rules/{name}.md").is_file()] == []


def test_addresses_of_sections_of_the_former_page_of_all_rules_still_work() -> None:
    anchors = set(re.findall(r'<a id="([a-z-]+)"></a>', (ROOT / "docs/rules.md").read_text("utf-8")))
    assert {*all_rule_docs(), *policy_docs(None), "second-document"} <= anchors


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that marks what it shows."""
    program = tmp_path / "pager with space"
    program.write_text('#!/bin/sh\necho "paged by $*"\ncat\n')
    program.chmod(0o755)
    return f"'{program}' one 'two three'"


PYTHON = (sys.executable, "-m", "jobgen")
"""The program that signals reach."""


def explain_long(folder: Path, *options: str, program: Sequence[str] = (), **environ: str) -> Terminal:
    """Explain all fields of a job, which is longer than the screen."""
    (folder / "jobs/bert.yaml").write_text(
        JOB.replace("}}", "}}, env: {" + ", ".join(f"V{n}: x" for n in range(40)) + "}", 1)
    )
    return Terminal(folder, "explain", "bert", *options, program=program, **environ)


def test_long_explanations_are_paged(repository: Path, pager: str) -> None:
    for environ in ({"JOBGEN_PAGER": pager, "PAGER": "false"}, {"PAGER": pager}):
        terminal = explain_long(repository, **environ)
        assert terminal.finish() == 0
        assert terminal.shown.startswith("paged by one two three\r\n")
        assert "V39" in terminal.shown


def test_what_is_not_paged(repository: Path, pager: str) -> None:
    for options, environ in (
        (["--no-pager"], {"PAGER": pager}),
        (["image"], {"PAGER": pager}),
        ([], {"JOBGEN_PAGER": "", "PAGER": pager}),
        ([], {"PAGER": "cat"}),
        ([], {"PAGER": "/no/such/program"}),
        ([], {"PAGER": "'open"}),
        ([], {"PAGER": "false"}),
        ([], {"PAGER": "sh -c 'exit 127'"}),
    ):
        terminal = explain_long(repository, *options, **environ)
        assert (terminal.finish(), "paged by" in terminal.shown) == (0, False)
        assert "image" in terminal.shown
    assert "paged by" not in run_jobgen_text(repository, "explain", "bert").stdout


def test_a_pager_is_not_run_by_a_shell(repository: Path) -> None:
    terminal = explain_long(repository, PAGER="touch ran; cat $(touch ran)")
    terminal.finish()
    assert not (repository / "ran").exists()
    assert find_pager({"PAGER": "less -R; rm x"}) == ["less", "-R;", "rm", "x"]


def test_less_is_quit_early_and_interrupted(repository: Path) -> None:
    if subprocess.run(["which", "less"], capture_output=True, check=False).returncode:
        pytest.skip("less is not installed")
    terminal = explain_long(repository, program=PYTHON)
    assert "V39" not in terminal.read(until="\x1b[K")
    os.killpg(terminal.process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert terminal.process.poll() is None
    for _ in range(400):
        # After an interrupt, less drops what was typed.
        os.write(terminal.controller, b"q")
        terminal.read(seconds=0.3)
        if terminal.process.poll() is not None:
            break
    assert terminal.finish() == 0
    assert "Traceback" not in terminal.shown


def test_sigterm_ends_the_pager_too(repository: Path, tmp_path: Path) -> None:
    program = tmp_path / "waits"
    program.write_text("#!/bin/sh\necho waits\nexec sleep 60\n")
    program.chmod(0o755)
    terminal = explain_long(repository, program=PYTHON, PAGER=str(program))
    assert "waits" in terminal.read(until="waits")
    os.kill(terminal.process.pid, signal.SIGTERM)
    assert terminal.finish() == 143
    command = ["ps", "-o", "pid=,stat=,args=", "-s", str(terminal.process.pid)]
    listed = subprocess.run(command, capture_output=True, check=False)
    assert not listed.stdout.split(), listed.stdout
