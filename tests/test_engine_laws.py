"""The laws of the store: it saves time, and never changes what a command says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lawfiles import JOBS_REPOSITORY, OTHER_FOLDER, EditedFolder
from linting import lint_paths
from sampling import sample

import jobgen
from jobgen import cache
from jobgen.api.errors import JobgenError
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import LintRequest
from jobgen.api.project import select_environments
from jobgen.cli.run_render import render
from jobgen.engine import workers
from jobgen.engine.store import Store
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.rendering import config
from jobgen.rendering.render_task import request_jobs
from jobgen.rendering.run import run
from jobgen.repo.layout import own_layers

Command = Callable[[Path], Any]


def _lint(*paths: str, **options: Any) -> Command:
    return lambda folder: lint_paths(folder, paths, (), format_="json", show_suppressed=True, **options)


def _lint_text(*paths: str, **options: Any) -> Command:
    return lambda folder: lint_paths(folder, paths, (), format_="text", **options)


def _lint_environment(folder: Path) -> Any:
    return lint_paths(folder, (), ("prod",), format_="json")


def _compare(folder: Path) -> Any:
    found = _ask(lambda: jobgen.diff(folder, "HEAD", format="json", more_formats=["text"]))
    return (dict(found.texts), found.findings) if isinstance(found, jobgen.DiffResult) else found


def _ask(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except JobgenError as error:
        return type(error), str(error)


def _render_tree(folder: Path) -> Any:
    """Write the tree; return what was said and what was written, and leave the tree as it was."""
    tree, before = folder / "rendered", folder.parent / "before"
    if tree.exists():
        shutil.copytree(tree, before, symlinks=True)
    said = [render(folder, (), (), tree, format_="yaml", allow_empty=True, allow_mass_delete=True) for _ in range(2)]
    files = {str(each.relative_to(tree)): each.read_bytes() for each in tree.rglob("*") if each.is_file()}
    shutil.rmtree(tree, ignore_errors=True)
    if before.exists():
        before.rename(tree)
    return said, files


COMMANDS: dict[str, Command] = {
    "lint": _lint(),
    "lint, with lines": _lint_text(),
    "lint --since": _lint(since="HEAD"),
    "lint --since, with lines": _lint_text(since="HEAD"),
    "lint --since HEAD~": _lint(since="HEAD~"),
    "lint PATHS": _lint("jobs/bert.yaml", "overlays/prod/overlay.yaml"),
    "lint FOLDER": _lint("jobs/sub"),
    "lint other FOLDER": _lint("loose"),
    "lint --since other FOLDER": _lint("loose", since="HEAD"),
    "lint --strict-files": _lint("loose", strict_files=True),
    "lint -e": _lint_environment,
    "lint --today": _lint(today="2026-05-31"),
    "lint --today, later": _lint(today="2026-06-02"),
    "lint --baseline": _lint(baseline="baseline.json"),
    "render": lambda folder: render(folder, (), (), None, format_="yaml"),
    "render JOB": lambda folder: render(folder, ("b*",), (), None, format_="yaml"),
    "render -o": _render_tree,
    "render --check": lambda folder: render(folder, (), (), folder / "rendered", format_="yaml", check=True),
    "diff": _compare,
    "report": lambda folder: _ask(lambda: jobgen.report(folder).data),
    "report --since": lambda folder: _ask(lambda: jobgen.report(folder, since="HEAD").data),
    "queue": lambda folder: _ask(lambda: jobgen.queue(folder, format="json")._replace(reports=())),
    "explain": lambda folder: _ask(lambda: jobgen.explain(folder, "bert")),
}


@contextmanager
def _store(folder: Path | None, version: str = "one") -> Iterator[None]:
    """Use the store in a folder, as a version of jobgen."""
    cache.enable(folder, version)
    try:
        yield
    finally:
        cache.disable()


@contextmanager
def _processes(count: int) -> Iterator[None]:
    """Share all work among several processes, however little it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_MIN_ITEMS", 1)
        patch.setattr(workers, "_count_cores", lambda: count)
        patch.setattr(workers, "PIECE", 2)
        yield


def _edit(edited: EditedFolder) -> list[str]:
    random = edited.random
    done = [edited.edit() for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
    if not random.randrange(4):
        done.append(edited.commit())
    if not random.randrange(4):
        done.append(edited.edit_tree())
    if not random.randrange(6):
        done.append("baseline")
        lint_paths(edited.folder, (), (), format_="text", write_baseline=True, baseline="baseline.json")
    if not random.randrange(6):
        done.append("tree")
        render(edited.folder, (), (), edited.folder / "rendered", format_="yaml")
    return done


OTHER_COMMANDS: dict[str, Command] = {
    "lint": _lint(),
    "lint ., with lines": _lint_text("."),
    "lint --strict-files": _lint(strict_files=True, explain_files=True),
    "lint FOLDER": _lint("base"),
    "lint two FOLDERS": _lint("prod", "base/web.yaml"),
    "lint FILE": _lint("web.yaml"),
    "lint in FOLDER": lambda folder: _lint(".")(folder / "base") if (folder / "base").is_dir() else None,
    "lint --since": _lint(since="HEAD"),
    "lint --since FOLDER": _lint("base", since="HEAD"),
    "diff": _compare,
}


@pytest.mark.parametrize("seed", sample(range(4), 4))
def test_a_store_never_changes_what_a_command_says(seed: int, tmp_path: Path, stress: int) -> None:
    for round_ in range(stress):
        assert check_commands(Random(f"{seed} {round_}"), tmp_path / str(round_))


@pytest.mark.parametrize("seed", sample(range(3), 3))
def test_a_store_never_changes_what_is_said_of_other_folders(seed: int, tmp_path: Path, stress: int) -> None:
    for round_ in range(stress):
        assert check_other_commands(Random(f"{seed} {round_}"), tmp_path / str(round_))


def check_commands(random: Random, folder: Path) -> list[str]:
    """Edit a jobs repository, and compare what commands say with and without a store."""
    edited = EditedFolder(folder / "repository", JOBS_REPOSITORY, random)
    edited.commit()
    done: list[str] = []
    for _ in range(3):
        done += [*_edit(edited), "|"]
        _compare_stores(
            random, folder, edited.folder, {name: COMMANDS[name] for name in _sample(random, COMMANDS)}, done
        )
    return done


def check_other_commands(random: Random, folder: Path) -> list[str]:
    """Edit a folder that is no jobs repository, and compare what commands say with and without a store."""
    edited = EditedFolder(folder / "folder", OTHER_FOLDER, random)
    done: list[str] = []
    for _ in range(3):
        done += [edited.edit() for _ in range(random.randrange(3))]
        done += [edited.commit()] if not random.randrange(3) else []
        done.append("|")
        names = _sample(random, OTHER_COMMANDS)
        _compare_stores(random, folder, edited.folder, {name: OTHER_COMMANDS[name] for name in names}, done)
    return done


EDITS = 60
"""How many edits a small repository has, one after the other: with few files, an edit costs little."""
DATES = ("2026-05-31", "2026-06-02")
ENVIRONMENTS: tuple[tuple[str, ...], ...] = ((), (), ("prod",), ("dev", "prod"))


@pytest.mark.parametrize("seed", sample(range(4), 2))
def test_each_of_many_edits_is_noticed(seed: int, tmp_path: Path, stress: int) -> None:
    for round_ in range(stress):
        assert check_edits(Random(f"{seed} {round_}"), tmp_path / str(round_))


def check_edits(random: Random, folder: Path) -> list[str]:
    """Edit a small repository many times; after each edit or two, compare runs with a store and without.

    The runs share results of files: those of other environments, dates, and of a lint for a render.
    """
    layers = [path for path in JOBS_REPOSITORY if path.startswith("overlays/") and "base" not in path]
    files = random.sample(sorted(JOBS_REPOSITORY.keys() - {*layers}), 8)
    makers = {path: JOBS_REPOSITORY[path] for path in (*layers, *files)}
    edited, store, done = EditedFolder(folder / "repository", makers, random), Store(), list[str]()
    for _ in range(EDITS):
        done += [edited.edit() for _ in range(random.choice((1, 1, 1, 2)))]
        work = random.choice((_lint_small, _lint_small, _lint_small, _render_small))
        ask = partial(work, edited.folder, random.choice(ENVIRONMENTS), random.choice(DATES))
        expected = _ask(partial(ask, None))
        assert _ask(partial(ask, store)) == expected, (done, ask.args)
    return done


def _lint_small(folder: Path, envs: tuple[str, ...], today: str, store: Store | None) -> Any:
    request = LintRequest(folder, envs=envs, today=today, leaves_objects=store is not None)
    return ask_findings(request, store or Store())._replace(lines={})


def _render_small(folder: Path, envs: tuple[str, ...], today: str, store: Store | None) -> Any:
    project = config.load(own_layers(folder), today=today)
    found = run(request_jobs(project, select_environments(project, envs))._replace(store=store))
    return found.objects, found.findings, found.not_rendered


def _sample(random: Random, commands: dict[str, Command]) -> list[str]:
    return random.sample(sorted(commands), 5)


def _compare_stores(random: Random, stores: Path, folder: Path, commands: dict[str, Command], done: list[str]) -> None:
    for name, command in commands.items():
        expected = command(folder)
        with _store(stores / "filled", "another" if not random.randrange(12) else "one"):
            assert command(folder) == expected, (name, done)
        if random.randrange(2):
            # It has not seen every edit.
            with _store(stores / "shared"), _processes(random.choice((2, 3))):
                assert command(folder) == expected, (name, done)


@pytest.mark.parametrize("seed", sample(range(4), 3))
def test_an_editor_finds_what_lint_finds(seed: int, tmp_path: Path, stress: int) -> None:
    for round_ in range(stress):
        assert check_editor(Random(f"{seed} {round_}"), tmp_path / str(round_))


def check_editor(random: Random, folder: Path) -> list[str]:
    """Edit a folder with and without saving, and compare the findings of an editor with those of a lint."""
    edited = EditedFolder(folder / "folder", JOBS_REPOSITORY if random.randrange(3) else OTHER_FOLDER, random)
    edited.commit()
    with _store(folder / "filled"):
        linter = WorkspaceLinter(edited.folder)
        done: list[str] = []
        for _ in range(3):
            done += [edited.edit() for _ in range(random.randrange(2))]
            drafts = dict(filter(None, (_draft(edited) for _ in range(random.randrange(3)))))
            done += [*(f"draft {path}" for path in drafts), "|"]
            found = _lint_drafts(linter, drafts)
            for path, content in drafts.items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(content)
            expected = _lint_saved(edited.folder)
            assert found == expected, done
            assert _lint_drafts(linter, {}) == expected, done
            if random.randrange(2):
                # Its answers are in the store that the editor uses.
                _lint()(edited.folder)
    return done


def _draft(edited: EditedFolder) -> tuple[str, bytes] | None:
    """Return a file as an editor has it, by its real path; None where it cannot be saved."""
    path, text = edited.draft()
    real = Path(os.path.realpath(edited.folder / path))
    if not real.is_relative_to(edited.folder.resolve()) or (real.exists() and not real.is_file()) or real.is_symlink():
        return None
    return str(real), text.encode("utf-8", "surrogateescape")


def _lint_drafts(linter: WorkspaceLinter, drafts: dict[str, bytes]) -> dict[str, list[str]]:
    found = linter.lint(drafts, lambda *_: None).findings
    return {file: sorted(map(str, each.all)) for file, each in found.items() if each.all}


def _lint_saved(folder: Path) -> dict[str, list[str]]:
    enabled = cache._folder
    cache.disable()
    try:
        findings = jobgen.lint(folder).findings
    except JobgenError as error:
        findings = error.findings
    finally:
        cache._folder = enabled
    found: dict[str, list[str]] = {}
    for finding in findings:
        found.setdefault(finding.location.file, []).append(str(finding))
    return {file: sorted(several) for file, several in found.items()}


def _list_entries(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file() and path.parent != store)


def _damage(random: Random, content: bytes) -> bytes:
    at = random.randrange(len(content))
    return random.choice(
        (
            content[:at],
            content[:at] + bytes((content[at] ^ (1 << random.randrange(8)),)) + content[at + 1 :],
            content[at:],
            content + b" ",
            b"",
        )
    )


TWICE: dict[str, Command] = {
    name: COMMANDS[name] for name in ("lint", "lint --since", "lint other FOLDER", "render -o")
}


def _say(folder: Path) -> list[Any]:
    return [command(folder) for command in TWICE.values()]


def test_damaged_and_foreign_entries_are_never_used(tmp_path: Path, stress: int) -> None:
    random, store = Random(1), tmp_path / "store"
    folders = [EditedFolder(tmp_path / name / "repository", JOBS_REPOSITORY, random) for name in ("a", "b")]
    for each in folders:
        each.commit()
    expected = [_say(each.folder) for each in folders]
    for _ in range(stress):
        with _store(store):
            assert [_say(each.folder) for each in folders] == expected
            entries = _list_entries(store)
            assert entries
            for entry in entries:
                if random.randrange(2):
                    entry.write_bytes(_damage(random, entry.read_bytes()))
            assert [_say(each.folder) for each in folders] == expected
            # Entries of another repository, or of another query.
            entries = _list_entries(store)
            contents = [entry.read_bytes() for entry in entries]
            random.shuffle(contents)
            for entry, content in zip(entries, contents, strict=True):
                entry.write_bytes(content)
            assert [_say(each.folder) for each in folders] == expected
        # Entries of another version that have been renamed are signed for another name.
        with _store(store, "another"):
            assert [_say(each.folder) for each in folders] == expected


@pytest.mark.stress
def test_another_repository_in_the_same_place_has_answers_of_its_own(tmp_path: Path) -> None:
    random, place = Random(2), tmp_path / "repository"
    folders = []
    for name in ("a", "b"):
        edited = EditedFolder(tmp_path / name, JOBS_REPOSITORY, random)
        edited.commit()
        folders.append(edited.folder)
    expected: dict[Path, object] = {}
    with _store(tmp_path / "store"):
        for folder in (*folders, *folders):
            folder.rename(place)
            found = _say(place)
            if folder not in expected:
                with _store(None):
                    expected[folder] = _say(place)
                cache.enable(tmp_path / "store", "one")
            place.rename(folder)
            assert found == expected[folder]


def test_a_killed_run_leaves_a_store_that_the_next_can_use(tmp_path: Path, stress: int) -> None:
    random, store = Random(3), tmp_path / "store"
    edited = EditedFolder(tmp_path / "repository", JOBS_REPOSITORY, random)
    edited.commit()
    for _ in range(2 * stress):
        edited.edit()
        process = os.fork()
        if not process:
            with _store(store), _processes(2):
                _say(edited.folder)
            os._exit(0)
        time.sleep(random.random() * 0.3)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        expected = _lint()(edited.folder)
        with _store(store):
            assert _lint()(edited.folder) == expected


def test_an_entry_is_of_the_version_that_wrote_it(tmp_path: Path) -> None:
    """What one version has found is asked for under another key by the next one."""
    with _store(tmp_path, "one"):
        key = cache.make_key("lint", b"content")
        cache.put(key, b"answer")
        assert cache.get(key) == b"answer"
    with _store(tmp_path, "two"):
        assert cache.make_key("lint", b"content") != key
        assert cache.get(cache.make_key("lint", b"content")) is None
    with _store(tmp_path, "one"):
        assert cache.get(cache.make_key("lint", b"content")) == b"answer"


def test_secrets_are_never_stored(tmp_path: Path) -> None:
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    edited = EditedFolder(tmp_path / "repository", JOBS_REPOSITORY, Random(4))
    edited.commit()
    job = (edited.folder / "jobs/bert.yaml").read_text()
    edited.write("jobs/bert.yaml", job.replace("env: {", f"env: {{TOKEN: {token}, PASSWORD: hunter2-and-more, "))
    edited.write("overlays/dev/overlay.yaml", OVERLAY.format(token=token))
    edited.write("loose/.env", f"TOKEN={token}\nPASSWORD=hunter2-and-more\n")
    with _store(tmp_path / "store"):
        for command in COMMANDS.values():
            command(edited.folder)
    entries = _list_entries(tmp_path / "store")
    assert entries
    for entry in entries:
        content = entry.read_bytes()
        assert token.encode() not in content
        assert b"hunter2" not in content


JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec: {framework: pytorch, image: "registry.example.com/train:1", run: {expires: 2026-06-01}}
"""
JOB_OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{namespace: ml-{env}}}\n"
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  patches:
    - merge: {{env: {{OTHER_TOKEN: {token}}}, replicas: {token}}}
"""
RUN = """
import json, sys
from jobgen.cli.main import run
for words in json.loads(sys.argv[1]):
    run(words)
print(json.dumps(sorted(sys.modules)))
"""


def _run(folder: Path, store: Path, *commands: list[str]) -> tuple[str, set[str]]:
    """Run commands in a process; return what they print and the modules that they imported."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(store)},
        capture_output=True,
        text=True,
        check=True,
    )
    said, _, modules = done.stdout.rstrip("\n").rpartition("\n")
    return said + done.stderr, set(json.loads(modules))


@pytest.mark.parametrize("seed", sample(range(2), 2))
def test_commands_on_unchanged_files_import_nothing_that_checks(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    jobs = EditedFolder(tmp_path / "repository", JOBS_REPOSITORY, random, share=1)
    # An error in the settings is found again.
    jobs.write("jobgen.yaml", "exclude: [jobs/sub/]\n")
    jobs.commit()
    other = EditedFolder(tmp_path / "other", OTHER_FOLDER, random, share=1)
    commands = {
        jobs.folder: (["lint"], ["lint", "jobs/bert.yaml"], ["lint", "loose"], ["lint", "--today", "2026-01-31"]),
        other.folder: (["lint"], ["lint", "."], ["lint", "base"], ["lint", "web.yaml"]),
    }
    for folder, several in commands.items():
        first, _ = _run(folder, tmp_path / "cache", *several)
        second, modules = _run(folder, tmp_path / "cache", *several)
        assert second == first
        assert not [name for name in modules if name.startswith(("jobgen.check", "jobgen.recognize."))]


def test_a_tree_that_is_up_to_date_is_not_rendered(tmp_path: Path) -> None:
    edited = EditedFolder(tmp_path / "repository", JOBS_REPOSITORY, Random(6), share=0)
    edited.write("jobs/bert.yaml", JOB)
    for env in ("base", "dev", "prod"):
        edited.write(f"overlays/{env}/overlay.yaml", JOB_OVERLAY.format(env=env))
    # A tree with warnings is rendered again, to say them again: this one overrides the namespace of the other file.
    edited.write("overlays/dev/more.json", '{"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {}}\n')
    edited.commit()
    words = ["render", "-o", "rendered", "--allow-empty"]
    # The first run creates the folder, and so changes that around it.
    _run(edited.folder, tmp_path / "cache", words, words)
    again, modules = _run(edited.folder, tmp_path / "cache", words, [*words, "--check"])
    assert "0 written" in again
    assert not [name for name in modules if name.startswith(("jobgen.check", "jobgen.spec", "jobgen.rendering.config"))]
