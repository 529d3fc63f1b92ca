"""What `make dist` builds: the same bytes from the same commit, complete, and accepted by PyPI."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import build_pyz  # noqa: E402 - a script, not a package

import jobgen  # noqa: E402
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
    "SECURITY.md",
    "pyproject.toml",
    "tools/build_ready.py",
    "docs/zh/rules.yaml",
)
DOCKERFILES = sorted(ROOT.rglob("deploy/**/Dockerfile*"))
UNLISTED = ("py.typed", "data/docs/zh/rules.yaml", "data/starter/pre-commit-config.yaml", "data/time_zones.txt")
"""Files of the wheel that no list of folders has."""
TEST_COMMAND = "jobgen/features/testing/commands/test.py"
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
    shown = f"the wheel of jobgen has {round(wheel.stat().st_size / 1_000_000)} MB"
    assert shown in (ROOT / "docs/dependencies.md").read_text("utf-8")
    assert checked.returncode == 0, checked.stdout


def test_no_file_is_packed_that_nobody_needs(built, files):
    """The patterns of the source distribution are those of .gitignore: without a slash, they fit in any folder."""
    (wheel,), (source,) = ((built / "dist").glob(name) for name in ("*.whl", "*.tar.gz"))
    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(source) as archive:
        in_source = [name.partition("/")[2] for name in archive.getnames()]
    junk = re.compile(r"__pycache__|\.pyc$|node_modules|\.orig$|~$")
    # The cases of the shipped policies are the examples of `jobgen explain`.
    code = [name for name in in_wheel if name.endswith(".py")]

    assert list(filter(junk.search, in_wheel + in_source)) == []
    # A checkout has a .gitignore, which hatchling adds.
    others = {name for name in in_source if not name.startswith(tuple(f"{part}/" for part in PARTS))}
    assert others - {".gitignore"} == {*(part for part in PARTS if (ROOT / part).is_file()), "PKG-INFO"}
    assert {name.split("/")[0] for name in in_wheel} == {"jobgen", f"jobgen-{jobgen.__version__}.dist-info"}
    assert [name for name in code if re.search(r"(^|/)(tests?|conftest|test_\w+)(/|\.py$)", name)] == [TEST_COMMAND]
    assert any(name.endswith(".dist-info/licenses/NOTICE") for name in in_wheel)


def list_copies(path):
    """Return the sources that the commands of a Dockerfile copy, and where to."""
    return re.findall(r"^COPY (?!--from)(.*) (/source/\S*)$", path.read_text(), re.MULTILINE)


def test_all_images_are_built_of_the_same_sources():
    first, *others = map(list_copies, DOCKERFILES)

    assert first
    assert all(each == first for each in others)


@pytest.mark.stress
def test_an_image_copies_what_its_build_needs(built, tmp_path):
    """The commands of a Dockerfile that copy the sources give a folder of which pip builds the same wheel."""
    copies = list_copies(DOCKERFILES[0])
    for sources, target in copies:
        for name in sources.split():
            folder = tmp_path / target.lstrip("/")
            if (built / name).is_dir():
                shutil.copytree(built / name, folder)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(built / name, folder)
    folder = tmp_path / "source"
    listed = subprocess.run(
        [sys.executable, "-c", "import hatchling.build as b; print(b.build_wheel('.'))"],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert listed.returncode == 0, listed.stderr
    (wheel,) = folder.glob("*.whl")
    (expected,) = (built / "dist").glob("*.whl")
    assert set(zipfile.ZipFile(wheel).namelist()) == set(zipfile.ZipFile(expected).namelist())


def find_pythons() -> dict[str, str]:
    """Return the supported versions of Python that this machine has, with their programs."""
    homes = [Path(sys.executable).resolve().parent, *Path("~/.pyenv/versions").expanduser().glob("*/bin")]
    path = os.pathsep.join([*map(str, homes), os.environ["PATH"]])
    found = {f"3.{minor}": shutil.which(f"python3.{minor}", path=path) for minor in (11, 12, 13, 14)}
    return {version: program for version, program in found.items() if program}


@pytest.mark.stress
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_is_installed_in_an_empty_environment(version, built, files, tmp_path):
    program = find_pythons().get(version)
    if program is None:
        pytest.skip(f"there is no Python {version} on this machine")
    (wheel,) = (built / "dist").glob("*.whl")
    subprocess.run([program, "-m", "venv", tmp_path / "env"], check=True)
    run_pip = [tmp_path / "env/bin/python", "-m", "pip", "--disable-pip-version-check"]
    installed = subprocess.run([*run_pip, "install", "--quiet", wheel], capture_output=True, text=True, check=False)
    if "No matching distribution" in installed.stderr:
        pytest.skip(f"no package registry has the dependencies for Python {version}")
    commands = ["--version", "init jobs", "-C jobs new bert", "-C jobs lint", "-C jobs render -e prod"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ends = [
        subprocess.run(
            [tmp_path / "env/bin/jobgen", *words.split()],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for words in commands
    ]

    assert subprocess.run([*run_pip, "check"], check=False).returncode == 0
    assert [(end.returncode, end.stderr) for end in ends if end.returncode] == []
    assert ends[0].stdout == f"jobgen, version {jobgen.__version__}\n"
    assert "kind: PyTorchJob" in ends[-1].stdout


@pytest.mark.stress
def test_one_file_runs_jobgen(built, files, tmp_path):
    (wheel,) = (built / "dist").glob("*.whl")
    shutil.copy(wheel, tmp_path)
    done = subprocess.run(
        [sys.executable, ROOT / "tools/build_pyz.py", tmp_path / wheel.name],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No matching distribution" in done.stderr:
        pytest.skip("no package registry has the dependencies")
    assert done.returncode == 0, done.stderr
    (tmp_path / "hello.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n")
    version = run_pyz(tmp_path / "jobgen.pyz", tmp_path / "cache", "--version")
    linted = run_pyz(tmp_path / "jobgen.pyz", tmp_path / "cache", "lint", str(tmp_path / "hello.yaml"))

    assert version.stdout == f"jobgen, version {jobgen.__version__}\n", version.stderr
    assert linted.returncode == 1
    assert "error: " in linted.stdout


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
