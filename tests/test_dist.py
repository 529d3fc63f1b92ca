"""What `make dist` builds: the same bytes from the same commit, complete, and accepted by PyPI."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import build_pyz  # noqa: E402 - a script, not a package

from jobgen.repo import ready  # noqa: E402

PARTS = (
    "jobgen",
    "schemas",
    "policies",
    "defects",
    "README.md",
    "LICENSE",
    "NOTICE",
    "CHANGELOG.md",
    "pyproject.toml",
    "tools/build_ready.py",
)
UNLISTED = ("py.typed", "data/starter/pre-commit-config.yaml", "data/time_zones.txt")
"""Files of the wheel that no list of folders has."""
MAX_WHEEL_BYTES = 8_000_000
MAIN = "import sys\n\n\ndef main():\n    print('jobgen', *sys.argv[1:], __file__)\n"


def copy_checkout(folder: Path, *, mask: int) -> Path:
    """Copy what is built, with other permissions and times of files."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, folder / part)
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        os.utime(path, (1_000_000_000 + mask, 1_000_000_000 + mask))
    return folder


def build(folder: Path) -> dict[str, bytes]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in sorted((folder / "dist").iterdir())}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("one") / "checkout", mask=0o022)


@pytest.fixture(scope="module")
def files(built: Path) -> dict[str, bytes]:
    return build(built)


@pytest.mark.stress
def test_the_same_files_are_built_to_the_same_bytes(files, tmp_path):
    again = build(copy_checkout(tmp_path / "elsewhere", mask=0o077))

    assert list(files) == list(again)
    assert [name for name in files if files[name] != again[name]] == []


def test_the_wheel_has_all_data_and_pypi_accepts_both(built, files):
    (wheel,) = (built / "dist").glob("*-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {f"jobgen/data/{path.relative_to(ROOT)}" for name in ("schemas", "policies") for path in list_data(name)}
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, (built / "dist").iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(files) == 2
    assert len(data) > 100
    assert data - names == set()
    assert {f"jobgen/{name}" for name in UNLISTED} - names == set()
    tables = {f"jobgen/data/ready/{ready.name_file(table)}" for table in ready.TABLES}
    assert {name for name in names if name.startswith("jobgen/data/ready/")} == tables
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    assert checked.returncode == 0, checked.stdout


def list_data(name: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", name], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [ROOT / line for line in listed.splitlines()] or [
        path for path in (ROOT / name).rglob("*") if path.is_file()
    ]


def test_the_wheel_renders_the_examples_of_this_repository(built, files, tmp_path):
    (wheel,) = (built / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    for part in ("jobs", "overlays", "jobgen.yaml"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    # Safe path and an own PYTHONPATH: the checkout that runs the tests must not be what is imported.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "jobgen", "render", "-o", "rendered"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert files
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "rendered").rglob("*.yaml"))) >= 10


@pytest.fixture
def pyz(tmp_path: Path) -> Path:
    start = (build_pyz.SOURCE / "__main__.py").read_text("utf-8").replace("@DIGEST@", "0123456789")
    start = start.replace("@BUILT_FOR@", f"{sys.implementation.cache_tag} on {sys.platform}")
    packages = {"site-packages/jobgen/__init__.py": b"", "site-packages/jobgen/cli/__init__.py": b""}
    files = {**packages, "site-packages/jobgen/cli/main.py": MAIN.encode(), "__main__.py": start.encode()}
    build_pyz.write_archive(tmp_path / "jobgen.pyz", files)
    return tmp_path / "jobgen.pyz"


def run_pyz(path: Path, cache: Path, *arguments: str, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, umask=umask)


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_jobgen_pyz_unpacks_itself_once_and_runs(pyz, tmp_path, umask):
    first = run_pyz(pyz, tmp_path / "cache", "lint", "-e", "prod", umask=umask)
    again = run_pyz(pyz, tmp_path / "cache", "--version", umask=umask)
    unpacked = tmp_path / "cache/jobgen/pyz"

    assert first.stdout.startswith("jobgen lint -e prod "), first.stderr
    assert again.stdout.startswith("jobgen --version ")
    assert [path.name for path in unpacked.iterdir()] == ["0123456789"]
    for folder in (unpacked / "0123456789", unpacked, unpacked.parent):
        assert not stat.S_IMODE(folder.stat().st_mode) & 0o022
    assert (pyz.stat().st_mode & 0o111) == 0o111


def test_jobgen_pyz_does_not_run_what_others_could_have_written(pyz, tmp_path):
    run_pyz(pyz, tmp_path / "cache", "lint")
    (tmp_path / "cache/jobgen/pyz/0123456789").chmod(0o777)
    done = run_pyz(pyz, tmp_path / "cache", "lint")

    assert (done.returncode, done.stdout) == (4, "")
    assert "other users can write" in done.stderr


HOSTILE_MAIN = "def main(): print('hostile')\n"


def plant(cache: Path) -> None:
    """Write a package that the archive did not unpack."""
    package = cache / "jobgen/pyz/0123456789/jobgen/cli"
    package.mkdir(parents=True)
    for path in (package.parent / "__init__.py", package / "__init__.py"):
        path.touch()
    (package / "main.py").write_text(HOSTILE_MAIN)


@pytest.mark.parametrize("mark", [".git", "jobgen.yaml"])
def test_jobgen_pyz_does_not_run_what_a_repository_contains(pyz, tmp_path, monkeypatch, mark):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    plant(tmp_path / "repository/.cache")
    (tmp_path / "repository" / mark).touch()
    monkeypatch.chdir(tmp_path / "repository")
    inside = run_pyz(pyz, tmp_path / "repository/.cache", "lint")
    relative = run_pyz(pyz, Path(".cache"), "lint")

    assert inside.stdout.startswith("jobgen lint "), inside.stderr
    assert relative.stdout.startswith("jobgen lint "), relative.stderr
    assert (tmp_path / f"temporary/jobgen-{os.getuid()}/pyz/0123456789").is_dir()
    assert (tmp_path / "home/.cache/jobgen/pyz/0123456789").is_dir()


def test_jobgen_pyz_follows_no_link_to_what_it_runs(pyz, tmp_path):
    plant(tmp_path / "elsewhere")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/jobgen").symlink_to(tmp_path / "elsewhere/jobgen")
    done = run_pyz(pyz, tmp_path / "cache", "lint")

    assert (done.returncode, done.stdout) == (4, "")
    assert "other users can write" in done.stderr


def test_jobgen_pyz_for_another_python_says_so(pyz, tmp_path):
    with zipfile.ZipFile(pyz) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["__main__.py"] = files["__main__.py"].replace(sys.implementation.cache_tag.encode(), b"cpython-399")
    build_pyz.write_archive(tmp_path / "other.pyz", files)
    done = run_pyz(tmp_path / "other.pyz", tmp_path / "cache")

    assert done.returncode == 4
    assert "was built for cpython-399 on" in done.stderr
    assert "Traceback" not in done.stderr


def test_jobgen_pyz_without_a_cache_that_can_be_written_says_so(pyz, tmp_path):
    (tmp_path / "file").touch()
    done = run_pyz(pyz, tmp_path / "file")

    assert done.returncode == 4
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_jobgen_pyz_that_is_damaged_says_so(pyz, tmp_path):
    with zipfile.ZipFile(pyz) as archive:
        entry = archive.getinfo("site-packages/jobgen/cli/main.py")
    content = bytearray(pyz.read_bytes())
    start = content.index(b"site-packages/jobgen/cli/main.py", entry.header_offset) + len(entry.filename)
    content[start : start + 20] = b"X" * 20
    pyz.write_bytes(content)
    done = run_pyz(pyz, tmp_path / "cache")

    assert (done.returncode, done.stdout) == (4, "")
    assert "jobgen.pyz is damaged (" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "cache/jobgen/pyz").iterdir()) == []


def test_jobgen_pyz_with_an_incomplete_cache_says_so(pyz, tmp_path):
    """Programs that tidy up delete single files."""
    unpacked = tmp_path / "cache/jobgen/pyz/0123456789"
    run_pyz(pyz, tmp_path / "cache")
    (unpacked / "jobgen/cli/main.py").unlink()
    done = run_pyz(pyz, tmp_path / "cache")

    assert (done.returncode, done.stdout) == (4, "")
    assert f"{unpacked} is not complete (" in done.stderr
    assert "Traceback" not in done.stderr
    shutil.rmtree(unpacked)
    assert run_pyz(pyz, tmp_path / "cache").returncode == 0


def test_jobgen_pyz_runs_for_a_user_without_a_home(pyz, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", "not-absolute")
    done = run_pyz(pyz, Path("not-absolute"), "lint")

    assert done.stdout.startswith("jobgen lint "), done.stderr
    assert (tmp_path / f"temporary/jobgen-{os.getuid()}/pyz/0123456789").is_dir()


@pytest.mark.parametrize("path", sorted(ROOT.rglob("deploy/**/Dockerfile*")), ids=lambda path: path.parent.name)
def test_dockerfiles_have_no_faults(path):
    if not shutil.which("hadolint", path=Path(sys.executable).parent):
        pytest.skip("hadolint is not installed")
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "--no-color", path], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    text = path.read_text()
    assert re.search(r"^USER [1-9]\d*$", text, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)
    assert re.search(r"install .*\bgit\b", text)
    # A tag with the patch version and the name of the system: what is built changes only with this file.
    assert all(re.search(r":\d+\.\d+\.\d+-\w+-\w+", line) for line in text.splitlines() if line.startswith("FROM "))
    sources = [word for line in text.splitlines() if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert [
        source for source in sources if not source.startswith(("--from", "/")) and not (ROOT / source).exists()
    ] == []
