"""Translated pages name the version of their source, have its commands, and are noticed when it changes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from walkthrough import MARK

import jobgen
from jobgen.check.rule_docs import all_docs

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import build_rules  # noqa: E402
import build_zh  # noqa: E402
import zh_rules  # noqa: E402

PAGES = [*build_zh.list_pages(), build_zh.RULES]
CHINESE = sorted([ROOT / "README.zh.md", *ROOT.glob("docs/zh/**/*.md")])
HAN = "\u4e00-\u9fff"
SOURCE = "# One\n\nThe first\nsentence.\n\n```text\npip install x  # it\n```\n\n```console\n$ date\nnow\n```\n"
TRANSLATED = (
    "<!-- source: page.md sha256:{} -->\n\n# 一\n\n> 英文原文：\n\n第一句。\n\n"
    "```text\npip install x  # 它\n```\n\n```console\n$ date\nnow\n```\n"
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_translates_its_source_as_it_is_now(page):
    text, problems = build_zh.build_page(page)

    assert problems == []
    assert page.read_text("utf-8") == text, f"run `{build_zh.COMMAND}`"
    assert re.match(r"<!-- source: \S+ sha256:[0-9a-f]{16} -->\n", text)
    assert f"对应 jobgen {jobgen.__version__}。" in text


def test_all_chinese_pages_but_the_first_have_a_source():
    assert set(CHINESE) - set(PAGES) == {ROOT / "docs/zh/index.md"}
    assert {name(page) for page in PAGES} == {
        "README.zh.md",
        "docs/zh/rules.md",
        "docs/zh/jobs.md",
        "docs/zh/lint.md",
        "docs/zh/overlays.md",
        "docs/zh/tutorial.md",
        *(f"docs/zh/seeds/{page.name}" for page in ROOT.glob("docs/seeds/*.md")),
    }


def test_commands_of_translated_pages_are_run_by_the_tests_of_their_sources():
    sources = {build_zh.read_page(page).source for page in build_zh.list_pages()} - {"README.md"}

    texts = {source: (ROOT / source).read_text("utf-8") for source in sorted(sources)}

    # Commands of other pages in docs/ are run by tests/test_docs.py.
    assert [source for source, text in texts.items() if source.startswith("docs/seeds/") and MARK not in text] == []
    assert all(source.startswith("docs/") for source in texts)


def test_readers_find_the_other_language():
    assert "[简体中文](README.zh.md)" in (ROOT / "README.md").read_text("utf-8")[:200]
    assert "](README.md)" in (ROOT / "README.zh.md").read_text("utf-8")[:200]


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """A source and its translation, in a repository of their own."""
    monkeypatch.setattr(build_zh, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(SOURCE, "utf-8")
    (tmp_path / "zh.md").write_text(TRANSLATED.format(build_zh.digest_prose(SOURCE)), "utf-8")
    return tmp_path / "page.md", tmp_path / "zh.md"


def test_version_and_outputs_are_written_without_a_translator(pages):
    source, page = pages
    source.write_text(SOURCE.replace("now", "later").replace("first\nsentence", "first sentence"), "utf-8")
    text, problems = build_zh.build_page(page)

    assert problems == []
    assert "$ date\nlater\n" in text
    assert "pip install x  # 它\n" in text
    assert f"\n> 英文原文：[page.md](page.md)，对应 jobgen {jobgen.__version__}。\n" in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sentence", "word", "page.md has changed since it was translated"),
        ("# it", "# that", "page.md has changed since it was translated"),
        ("install x", "install y", "the commands of a block differ from the source"),
        ("```console\n", "```yaml\n", "or they are of other languages"),
        ("```console\n", "<!-- fails -->\n```console\n", "or they are of other languages"),
    ],
)
def test_a_change_that_needs_a_translator_is_noticed(pages, old, new, expected):
    source, page = pages
    source.write_text(SOURCE.replace(old, new), "utf-8")

    assert expected in "\n".join(build_zh.build_page(page)[1])


def test_a_page_is_recorded_as_translated(pages):
    source, page = pages
    source.write_text(SOURCE.replace("sentence", "word"), "utf-8")
    text, problems = build_zh.build_page(page, is_translated=True)
    page.write_text(text, "utf-8")

    assert problems == []
    assert build_zh.build_page(page) == (text, [])


def test_a_page_without_a_source_is_noticed(pages):
    _, page = pages
    page.write_text("# 一\n", "utf-8")

    assert build_zh.build_page(page)[1] == ["the first line must be `<!-- source: PAGE sha256:… -->`"]


def test_the_command_says_whether_pages_are_current(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["build_zh.py", "--check"])

    assert (build_zh.main(), capsys.readouterr().err) == (0, "")


def test_a_new_version_goes_into_all_pages(monkeypatch):
    monkeypatch.setattr(build_zh, "__version__", "99.0.0")

    assert [page for page in PAGES if "，对应 jobgen 99.0.0。" not in build_zh.build_page(page)[0]] == []


def test_every_rule_has_a_summary_in_chinese():
    page = build_zh.RULES.read_text("utf-8")

    translated = [doc for doc in all_docs(None).values() if doc.category in build_rules.CATEGORIES]

    assert len(re.findall(r"^\| \[", page, re.MULTILINE)) == len(translated) > 250


def test_missing_superfluous_and_outdated_summaries_are_noticed():
    table = {"a": {"en": "A.", "zh": "甲。"}, "b": {"en": "B.", "zh": "乙。"}, "c": {"en": "C.", "zh": "丙。"}}
    problems = zh_rules.find_outdated("rules", table, {"a": "A.", "b": "Bee.", "d": "D."})

    assert [problem.partition(" of ")[0].partition(" from ")[0].partition(" to ")[0] for problem in problems] == [
        "translate `b`",
        "remove `c`",
        "add `d`",
    ]


def find_faults_of_setting(text: str) -> list[str]:
    """Return places without full-width punctuation or spaces around Latin words, or with a line break in a sentence."""
    prose = re.sub(r"^(```|~~~).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"\]\([^)]*\)", "]", prose)
    latin = r"[A-Za-z0-9`%]"
    faults = (rf"[{HAN}][,;:?!()]", rf"[{HAN}]{latin}|{latin}[{HAN}]", rf"[{HAN}，、；：]\n *[{HAN}`\[A-Za-z]")
    return [found for fault in faults for found in re.findall(rf".{{0,8}}(?:{fault}).{{0,8}}", prose)]


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_chinese_is_set_as_chinese(page):
    text = page.read_text("utf-8")

    assert len(re.findall(rf"[{HAN}]", text)) > 100
    assert find_faults_of_setting(text) == []


@pytest.mark.parametrize(
    "text", ["任务,队列", "任务(job)", "用GPU训练", "`a`是", "任务，\n队列", "任务\n  [队列](a.md)"]
)
def test_faults_of_setting_are_noticed(text):
    assert find_faults_of_setting(text) != []
    assert find_faults_of_setting("任务，队列（job）用 GPU 训练 `a`。\n\n```\n任务,GPU\n```\n[任务](a中b.md)") == []
