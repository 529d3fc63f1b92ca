"""Pages that are followed step by step: their files and commands work in an empty folder, and print what is shown.

`pytest --accept tests/test_walkthroughs.py` writes what commands print now into the pages, and draws their pictures.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from jobgenprocess import install_jobgen
from pictures import MAX_BYTES, compare_picture
from report_browser import settle
from terminal_picture import draw_terminal
from walkthrough import COLUMNS, MARK, Command, accept_outputs, fits, mask, run_page

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs/terminal"
TUTORIAL = ROOT / "docs/tutorial.md"
PAGES = [
    page for page in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/seeds/*.md")]) if MARK in page.read_text("utf-8")
]


@pytest.fixture(scope="module")
def follow(tmp_path_factory):
    """Return a function that follows a page, once, and returns its folder and its commands."""

    @cache
    def follow_page(page: Path) -> tuple[Path, list[Command]]:
        folder, programs = tmp_path_factory.mktemp(page.stem), tmp_path_factory.mktemp("programs")
        # On one page, jobgen is the installed program. On the others it starts fast, so that it does not show its
        # progress in a picture if the machine is busy.
        if page.name != "install.md":
            install_jobgen(programs)
        return folder, list(run_page(page, folder, programs))

    return follow_page


def draw_pictures(page: Path, commands: list[Command]) -> dict[str, str]:
    """Return the pictures of a page: commands as a terminal shows them."""
    shown = re.findall(r"!\[(.*?)\]\(terminal/([\w-]+\.svg)\)", page.read_text("utf-8"))
    titles = {name: title for title, name in shown}
    drawn = {
        command.picture: draw_terminal(command.text, command.screen, titles[command.picture], COLUMNS)
        for command in commands
        if command.picture
    }
    assert drawn.keys() == titles.keys()
    return drawn


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_what_the_page_shows(page, follow, accept):
    _, commands = follow(page)
    drawn = draw_pictures(page, commands)
    if accept:
        accept_outputs(page, commands)
        commands = [command._replace(shown=command.printed) for command in commands]
        for name, picture in drawn.items():
            (PICTURES / name).write_text(picture, "utf-8")

    assert len(commands) >= 3
    assert [(each.text, each.code, each.printed) for each in commands if not each.is_as_shown] == []
    assert {name: mask((PICTURES / name).read_text("utf-8")) for name in drawn} == {
        name: mask(picture) for name, picture in drawn.items()
    }


def test_the_tutorial_shows_the_page_of_its_pull_request(browser, follow, tmp_path, accept):
    folder, _ = follow(TUTORIAL)
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light", reduced_motion="reduce")
    page.goto((folder / "change.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    settle(page)
    found = page.screenshot()
    page.close()

    assert compare_picture(PICTURES / "change.png", found, accept=accept, scratch=tmp_path) == ""


def test_pictures_are_small_and_shown():
    text = "".join(page.read_text("utf-8") for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")))

    assert [path.name for path in PICTURES.iterdir() if f"terminal/{path.name}" not in text] == []
    assert [path.name for path in PICTURES.iterdir() if path.stat().st_size > MAX_BYTES] == []


def test_the_tutorial_and_the_examples_are_followed():
    assert {TUTORIAL, *ROOT.glob("docs/seeds/*.md")} <= set(PAGES)


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nc\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\nd\n", False),
        ("", "a\n", False),
        ("1 file checked by 7 rules\n", "1 file checked by 8 rules\n", True),
        ("1 file checked by 7 rules\n", "2 files checked by 7 rules\n", False),
    ],
)
def test_output_is_compared_line_by_line(shown, printed, expected):
    assert fits(shown, printed) is expected


def test_a_command_with_another_output_or_exit_code_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```yaml\n# jobs/a.yaml\na: 1\n```\n\n"
        "```console\n$ cat jobs/a.yaml\n# jobs/a.yaml\na: 1\n$ cd jobs; ls\nb.yaml\n$ pwd\n...\n```\n"
        "<!-- fails -->\n```console\n$ true\n```\n"
    )
    folder = tmp_path / "work"
    folder.mkdir()
    same, different, moved, succeeds = commands = list(run_page(page, folder))

    assert [each.is_as_shown for each in commands] == [True, False, True, False]
    assert (same.printed, different.printed, moved.printed) == ("# jobs/a.yaml\na: 1\n", "a.yaml\n", f"{folder}/jobs\n")
    assert succeeds.code == 0

    accept_outputs(page, commands)
    assert "$ cd jobs; ls\na.yaml\n$ pwd\n...\n" in page.read_text()
