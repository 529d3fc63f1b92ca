"""What is shown of a file with secrets: everything but them, and nothing that tells what they are."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lintfiles import lint_in_formats
from linting import lint_paths
from sampling import laws

from jobgen.api.diff import diff
from jobgen.api.project import load
from jobgen.cli.commands.explain import explain_name
from jobgen.cli.doctor.repository import check_environments, check_jobs
from jobgen.features.convert.commands.import_ import import_manifests
from jobgen.features.convert.commands.migrate import migrate_all, migrate_jobs
from jobgen.features.gitops.commands.fn import run as run_function
from jobgen.features.page.report import report
from jobgen.k8s.distinctive import is_distinctive
from jobgen.k8s.redaction import redact
from jobgen.rendering.config import load_own as config_of

HEADER = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/a:latest
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
"""
REFERENCE = "  env:\n    HF_TOKEN: {valueFrom: {secretKeyRef: {name: hub, key: token}}}\n"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec:\n  patches: [{merge: {PATCH}}]\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: ml}
spec:
  containers:
    - name: main
      image: example.com/test:latest
      foo: bar
"""


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / {"job": "jobs/a.yaml", "overlay": "overlays/prod/overlay.yaml", "other": "jobs/b.yaml"}[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def lint(root: Path) -> str:
    done = lint_paths(root, (), (), format_="text")
    return (done.out + done.err).replace(str(root), "")


def lint_all(root: Path) -> dict[str, str]:
    return {form: text.replace(str(root), "") for form, text in lint_in_formats(root).items()}


FAULTS = {
    "merge conflict": "<<<<<<< HEAD\n  shm: 8Gi\n=======\n  shm: 4Gi\n>>>>>>> main\n",
    "a tab": "\tshm: 8Gi\n",
    "wide colon": "  shm：8Gi\n",
    "bad indent": "   shm: 8Gi\n",
    "no space": "  shm:8Gi\n",
    "open quote": '  shm: "8Gi\n',
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "reference",
    [
        REFERENCE,
        "  env:\n    HF_TOKEN:\n      secretKeyRef:\n        name: hub\n        key: api-token\n",
        "  env:\n    - name: HF_TOKEN\n      valueFrom:\n        secretKeyRef: {name: hub, key: token}\n",
        "  secrets: {hub: {env: {HF_TOKEN: hub-token}}}\n",
        "  volumes:\n    keys: {secret: hub-token, mountPath: /keys}\n",
        "  command: [sh, -c, 'train --token $HF_TOKEN --api-key=${API_KEY}']\n",
    ],
)
def test_a_syntax_error_beside_a_reference_is_shown_like_any_other(tmp_path: Path, fault: str, reference: str) -> None:
    plain = re.sub("(?i)token|secret|api-key|api_key|password", "other", reference)
    for name, text in (("with", reference), ("without", plain)):
        write(tmp_path / name, job=HEADER + FAULTS[fault] + text + "  command: [train]\n")
    found, expected = lint(tmp_path / "with"), lint(tmp_path / "without")

    assert "not shown" not in found
    assert "*" not in found
    changed = ("not a field", "unknown", "1 finding")
    assert [line for line in found.split("\n")[:3] if not any(word in line for word in changed)] == [
        line for line in expected.split("\n")[:3] if not any(word in line for word in changed)
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_syntax_error_beside_a_value_shows_all_but_the_value(tmp_path: Path, fault: str) -> None:
    write(tmp_path, job=HEADER + FAULTS[fault] + "  env:\n    DB_PASSWORD: hunter2\n    LR: 1\n")
    shown = lint(tmp_path)

    assert "not shown" not in shown
    assert "hunter" not in shown
    assert "8Gi" in shown or fault == "merge conflict"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("stringData:\n  password: Tr0ub4dor: x\n", "  password: ************"),
        ("stringData:\n  password: 'Tr0ub4dor\n", "  password: '*********"),
    ],
)
def test_the_line_of_a_broken_secret_shows_its_key(tmp_path: Path, text: str, shown: str) -> None:
    write(tmp_path, job=f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{text}")
    found = lint(tmp_path)

    assert shown in found
    assert "ub4d" not in found


WORDS = (
    "test",
    "late",
    "latest",
    "main",
    "bar",
    "foo",
    "bert",
    "ml",
    "spec",
    "image",
    "mutable",
    "version",
    "a",
    "pod",
)


@pytest.mark.parametrize("word", WORDS)
def test_a_common_password_changes_no_other_word(tmp_path: Path, word: str) -> None:
    """Text around a gap tells what was there."""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ml}\nstringData: {password: VALUE}\n---\n"
    write(tmp_path / "one", job=secret.replace("VALUE", f"'{word}'") + POD)
    write(tmp_path / "two", job=secret.replace("VALUE", f"'{'z' * len(word)}'") + POD)
    found = [lint_all(tmp_path / name) for name in ("one", "two")]

    assert "`latest` is a mutable tag" in found[0]["text"]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *(
            (word, False)
            for word in (*WORDS, "PyTorchJob", "registry.example.com/bert:1.4.2", "v1beta1", "ReadWriteMany")
        ),
        *((word, False) for word in ("2.1.0-cuda12.1", "correct-horse", "10.0.0.1:8080", "", "password")),
        *(
            (word, True)
            for word in ("hunter2hunter2", "Zq7xW2v9LpKd4Tn", "73912046582", "s3cr3t-Zq7xW2v9", "aB3$kL9#mN2!")
        ),
    ],
)
def test_only_what_nothing_else_can_hold_is_searched_for(text: str, is_one: bool) -> None:
    assert is_distinctive(text) == is_one


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`--db-password=test` of `test` is `latest`", "`--db-password=…` of `test` is `latest`"),
        ("`DB_PASSWORD: test` and `LR: test`", "`DB_PASSWORD: …` and `LR: test`"),
        ("the token test is `test`", "the token test is `test`"),
    ],
)
def test_a_common_value_is_masked_after_its_name(text: str, shown: str) -> None:
    assert redact(text, {"test"}) == shown


def test_base64_of_a_secret_is_not_shown(tmp_path: Path) -> None:
    value = "Zq7xW2v9LpKd4Tn"
    encoded = b64encode(value.encode()).decode()
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{a: {value}}}\n"
    write(tmp_path, job=secret.replace("stringData", "data").replace(value, encoded), other=POD.replace("bar", encoded))
    shown = lint_all(tmp_path).values()
    write(tmp_path / "own", job=secret + "---\n" + POD.replace("foo", encoded))

    assert not [text for text in [*shown, lint(tmp_path / "own")] if encoded in text and "b.yaml" not in text]


# --- The laws, with generated files.

# VALUE is the secret. Text between the marks is not broken: the name of a value says that it is one.
PLACES = {
    "stringData": "apiVersion: v1\nkind: «Secret»\nmetadata: {name: s, namespace: ml}\n"
    "«stringData»:\n  user: x\n  a: «VALUE»\n",
    "stringData in quotes": "apiVersion: v1\nkind: «Secret»\nmetadata: {name: s}\n"
    '«stringData»:\n  a: «"VALUE"»\n  b: x\n',
    "stringData in braces": "apiVersion: v1\nkind: «Secret»\nmetadata: {name: s}\n"
    "«stringData»: {a: «VALUE»}\ntype: Opaque\n",
    "block": "apiVersion: v1\nkind: «Secret»\nmetadata: {name: s}\n"
    "«stringData»:\n  a: |\n    user: x\n    pass: «VALUE»\n",
    "job": HEADER + "  env:\n    LR: 1\n    «DB_PASSWORD: VALUE»\n    NUM: 2\n  imag: 1\n",
    "job in braces": HEADER + "  env: {LR: 1, «DB_PASSWORD: VALUE», NUM: 2}\n  imag: 1\n",
    "job, list": HEADER
    + "  env:\n    - «name: DB_PASSWORD»\n      «value: VALUE»\n    - {name: NUM, value: '2'}\n  imag: 1\n",
    "job, argument": HEADER + "  args:\n    - «--db-password=VALUE»\n    - --lr=1\n  imag: 1\n",
    "job, block": HEADER + "  env:\n    «DB_PASSWORD: |\n      VALUE»\n    NUM: 2\n  imag: 1\n",
    "config": HEADER + "  configs:\n    c:\n      mountPath: /c\n      data:\n        «password: VALUE»\n  imag: 1\n",
    "pod": POD
    + "      env:\n        - {«name: DB_PASSWORD, value: VALUE»}\n        - {name: NUM, value: '2', valu: 1}\n",
}
BREAKS = ("", "\t", "：", "[", "]", "{", '"', "'", ": ", "- ", "\n", "\n<<<<<<< HEAD\n", "#", "  ", "*", "`", "，")
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
places = st.sampled_from(sorted(PLACES))
strong = (
    st.text(LETTERS + "0123456789", min_size=12, max_size=30)
    .filter(is_distinctive)
    .filter(lambda text: text[0].isalpha())
)


def damage(draw: st.DrawFn, text: str) -> str:
    """Return a text in which something was typed or removed, anywhere but between marks."""
    if draw(st.booleans()):
        kept = [match.span() for match in re.finditer("«[^»]*»", text)]
        at = draw(st.integers(0, len(text)).filter(lambda at: not any(start < at < end for start, end in kept)))
        inserted = draw(st.sampled_from(BREAKS))
        removed = 0 if inserted or text[at : at + 1] in ("", "«") else 1
        text = text[:at] + inserted + text[at + removed :]
    return text.replace("«", "").replace("»", "")


@st.composite
def broken(draw: st.DrawFn) -> str:
    """Return a file with a secret, in which something was typed or removed but in the secret and its name."""
    return damage(draw, PLACES[draw(places)])


def show_all(root: Path) -> list[str]:
    """Return everything that commands show of a repository."""
    shown = [*lint_all(root).values()]
    for name, form in (("a", "text"), ("a", "json"), ("s", "text")):
        try:
            shown.append(explain_name(root, name, "", (), format_=form).out)
        except Exception as error:  # noqa: BLE001 -- its message is shown
            shown.append(str(error))
    (root / "empty").mkdir(exist_ok=True)
    for form in ("text", "json", "delta"):
        try:
            shown.append(diff(root, folders=(f"{root}/empty", f"{root}/jobs"), format=form).text)
        except Exception as error:  # noqa: BLE001
            shown.append(str(error))
    return [text.replace(str(root), "") for text in shown]


@given(text=broken(), value=strong)
@laws(15)
def test_no_output_holds_a_secret(text: str, value: str) -> None:
    with TemporaryDirectory() as folder:
        root = write(Path(folder), job=text.replace("VALUE", value))
        leaks = [shown for shown in show_all(root) if value[2:-2] in shown]
    assert not leaks, leaks[0]


def show_of_readers(root: Path) -> list[str]:
    """Return what the commands show that read files by themselves, but for the objects that they write."""
    text = (root / "jobs/a.yaml").read_text().rstrip().partition("\n---")[0].replace("\n", "\n  ")
    config = "functionConfig: {apiVersion: jobgen.dev/v1, kind: JobValidator, metadata: {name: v}}"
    given = f"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n{config}\nitems:\n- {text}\n"
    done = run_function(root, "", given.encode())
    shown = [done.err + done.out.partition("\nresults:")[2]]
    shown.append(migrate_jobs(root, ["jobs/a.yaml"], "jobset", (), None).err)
    shown.append(import_manifests(root, ["jobs/a.yaml"], None).err)
    shown.append(migrate_all(root, "trainer", None, write=False, force=False).err)
    project = config_of(root)
    shown += [str(check_jobs(root, project)), str(check_environments(project)), str(load(root).findings)]
    return [text.replace(str(root), "") for text in shown]


@given(text=broken(), value=strong, is_fixed=st.booleans())
@laws(12)
def test_no_command_that_reads_files_by_itself_shows_a_secret(text: str, value: str, is_fixed: bool) -> None:
    if is_fixed:
        text = text.replace("  imag: 1\n", "").replace("      foo: bar\n", "")
    overlay = OVERLAY.replace("PATCH", "env: {DB_PASSWORD: VALUE}, labels: {a: [}")
    with TemporaryDirectory() as folder:
        root = write(Path(folder), job=text.replace("VALUE", value), overlay=overlay.replace("VALUE", value))
        leaks = [shown for shown in show_of_readers(root) if value[2:-2] in shown]
    assert not leaks, leaks[0]


SAME_SHAPE = str.maketrans(LETTERS, LETTERS[1:26] + "a" + LETTERS[27:] + "A")
COMMON = (*WORDS, "pytorch", "master", "Worker", "restart", "env", "Opaque", "registry", "argument")


@given(text=broken(), value=st.sampled_from(COMMON))
@laws(12)
def test_no_output_depends_on_a_common_secret(text: str, value: str) -> None:
    """With another value of the same shape, everything that is shown is the same."""
    shown = []
    for each in (value, value.translate(SAME_SHAPE)):
        with TemporaryDirectory() as folder:
            shown.append(show_all(write(Path(folder), job=text.replace("VALUE", each))))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("value", ["latest", "test", "Zq7xW2v9LpKd4Tn"])
def test_a_value_of_an_overlay_is_hidden_and_hides_nothing_else(tmp_path: Path, value: str) -> None:
    other = value.translate(SAME_SHAPE)
    for each in (value, other):
        patch = f"env: {{DB_PASSWORD: {each}, API_KEY: [{each}]}}, labels: {{team: test}}"
        write(tmp_path / each, job=HEADER + "  imag: 1\n", overlay=OVERLAY.replace("PATCH", patch))
    found = [show_all(tmp_path / each) for each in (value, other)]

    assert found[0] == found[1]


REFERENCES = HEADER + (
    "  # The token comes from the vault; see secret hub, whose key token expires.\n"
    "  env:\n"
    "    «HF_TOKEN: {secretKeyRef: {name: hub, key: token}}»\n"
    "    «API_KEY:\n      valueFrom:\n        secretKeyRef: {name: hub, key: api-key}»\n"
    "    NUM: 1\n"
    "  «secrets: {hub: {env: {WANDB_API_KEY: wandb-key}}}»\n"
    "  «volumes: {keys: {secret: hub-token, mountPath: /keys}}»\n"
    "  command: [train, «--token, $(HF_TOKEN)», --tokenizer, bert]\n"
)


_JOINED = re.compile(r"(?:key: token\}\}|api-key\}|wandb-key\}\}\}|/keys\}\}|bert\])[^\n]")


@st.composite
def without_values(draw: st.DrawFn) -> str:
    """Return a file with references to Secrets, in which something was typed or removed but in the references.

    A line that joins a reference with what follows it is left out: what stands behind a secret's name may be its value.
    """
    text = damage(draw, REFERENCES + draw(st.sampled_from(["", *FAULTS.values()])))
    assume(not _JOINED.search(text))
    return text


@given(text=without_values())
@laws(12)
def test_a_file_without_secrets_is_shown_as_it_is(text: str) -> None:
    """References, and words about secrets, hide nothing."""
    with TemporaryDirectory() as folder:
        root = write(Path(folder), job=text)
        shown = lint_all(root)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jobgen.rendering.redact.redact_findings", lambda findings, _: list(findings))
            patch.setattr("jobgen.rendering.redact.redact_file", lambda file: file.content.decode().split("\n"))
            raw = lint_all(root)
    assert shown == raw


@pytest.mark.parametrize("value", ["latest", "zzzzzz"])
def test_the_page_hides_a_value_where_it_stands(tmp_path: Path, value: str) -> None:
    write(tmp_path, job=HEADER + f"  env: {{DB_PASSWORD: {value}, TAG: latest}}\n  roles: {{master: {{}}}}\n")
    page = report(tmp_path)

    assert "a:latest" in page.data
    assert '"value: …"' in page.data
    assert "zzzz" not in page.page


def test_the_examples_of_the_page_about_secrets_lint_clean(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs/secrets.md").read_text()
    blocks = re.findall("```yaml\n(.*?)```", page, re.DOTALL)
    for number, block in enumerate(blocks):
        write(tmp_path / f"{number}", job=block)
        assert "0 objects" not in lint(tmp_path / f"{number}")
    write(tmp_path / "all", job=blocks[0], other=blocks[1])
    shown = {name: lint(tmp_path / name) for name in (*map(str, range(len(blocks))), "all")}

    assert len(blocks) == 2
    assert not [text for text in shown.values() if ": error:" in text or ": warning:" in text], shown


SECRET = "apiVersion: v1\nkind: KIND\nmetadata: {name: s}\nFIELD: {a: VALUE}\n"


@pytest.mark.parametrize("value", ["latest", "Zq7xW2v9LpKd4Tn"])
@pytest.mark.parametrize(("kind", "field"), [("Secert", "data"), ("secret", "data"), ("Secret", "stringdata")])
def test_a_misspelled_secret_is_explained_without_its_values(tmp_path: Path, kind: str, field: str, value: str) -> None:
    write(tmp_path, job=SECRET.replace("KIND", kind).replace("FIELD", field).replace("VALUE", value))

    shown = [*lint_all(tmp_path).values(), report(tmp_path).data]
    # Descriptions of rules have the common one.
    assert not [text for text in shown if value in text and is_distinctive(value)]
    assert value not in explain_name(tmp_path, "s", "", (), format_="text").out


def test_a_file_with_the_text_of_another_shows_no_secret(tmp_path: Path) -> None:
    text = SECRET.replace("KIND", "Secret").replace("FIELD", "data").replace("VALUE", "!!binary Zq7xW2v9LpKd4Tn")
    write(tmp_path, job=text, other=text)
    explained = explain_name(tmp_path, "s", "", (), format_="text")

    assert "W2v9Lp" not in lint(tmp_path) + explained.out + explained.err


@pytest.mark.parametrize("value", ["latest", "Zq7xW2v9LpKd4Tn"])
def test_a_function_reports_no_secret(tmp_path: Path, value: str) -> None:
    (tmp_path / "jobs").mkdir()
    item = SECRET.replace("KIND", "Secret").replace("FIELD", "data").replace("VALUE", value)
    items = "- " + item.rstrip().replace("\n", "\n  ")
    config = "functionConfig: {apiVersion: jobgen.dev/v1, kind: JobValidator, metadata: {name: v}}"
    given = f"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n{config}\nitems:\n{items}\n"
    done = run_function(tmp_path, "", given.encode())

    assert "must be base64" in done.err
    assert value not in done.err + done.out.partition("\nresults:")[2]


@pytest.mark.parametrize("text", ["!!binary VALUE", "!!binary |\n    VALUE", "!!int VALUE"])
def test_a_value_that_is_not_what_its_tag_says_is_explained(tmp_path: Path, text: str) -> None:
    value = "Zq7xW2v9LpKd4Tn"
    write(tmp_path, job=f"{IN_SECRET}data:\n  password: {text}\n".replace("VALUE", value))
    shown = lint(tmp_path)

    assert f"is tagged `{text.partition(' ')[0]}` but " in shown
    assert "; remove the tag" in shown
    assert value not in shown


IN_SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ml}\n"
PATCH = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec:\n  patches:\n    - "
IN_ENV = HEADER + "  env:\n    "
WRONG_PLACES = {
    "a list": IN_SECRET + "stringData: [a=VALUE]\n",
    "no space": IN_SECRET + "stringData:\n  a:VALUE\n",
    "braces and text": IN_SECRET + "stringData:\n  a: {VALUE}x\n",
    "braces": IN_SECRET + "stringData:\n  a: {VALUE}\n",
    "an anchor": IN_SECRET + "stringData:\n  a: &VALUE\n",
    "two keys": IN_SECRET + "stringData:\n  VALUE: a\n  VALUE: b\n",
    "a key that is too deep": IN_SECRET + "stringData:\n  a: x\n    VALUE: y\n",
    "a key": IN_SECRET + "stringData: {VALUE: x}\n",
    "a nested key": IN_SECRET + "stringData: {a: {VALUE: x}}\n",
    "a key in a list": IN_SECRET + "stringData: {a: [{VALUE: x}]}\n",
    "a key of the object": IN_SECRET + "VALUE: x\n",
    "an unknown field": IN_SECRET + "foo: {bar: [VALUE]}\n",
    "a field of the metadata": IN_SECRET.replace("}", ", VALUE: x, annotations: {a: VALUE}}"),
    "a key of a misspelled kind": IN_SECRET.replace("Secret", "Secert") + "VALUE: x\n",
    "a comment": IN_SECRET + "stringData:\n  a: ab #VALUE\n",
    "a comment above": IN_SECRET + "# VALUE\nstringData:\n  a: ab\n",
    "a line in a text": IN_SECRET + "stringData:\n  a: |\n    x\n---\nVALUE\n",
    "lines in a text": IN_SECRET + "stringData:\n  a: |\n    x\n---\n- b: VALUE\n",
    "a wide sign": HEADER + "  args: [--api_key＝VALUE]\n  imag: 1\n",
    "a wide colon": IN_ENV + "DB_PASSWORD： VALUE\n",
    "a wide colon in braces": HEADER + "  env: {DB_PASSWORD： VALUE}\n",
    "a key of a variable": IN_ENV + "DB_PASSWORD: {VALUE: x}\n",
    "a field of a variable": IN_ENV + "DB_PASSWORD: {foo: VALUE}\n",
    "a reference": IN_ENV + "DB_PASSWORD: {valueFrom: VALUE}\n",
    "another reference": IN_ENV + "DB_PASSWORD: {secretKeyRef: VALUE}\n",
    "a field of a reference": IN_ENV + "DB_PASSWORD: {valueFrom: {secretKeyRef: {foo: VALUE}}}\n",
    "a patch": PATCH + "json: [{op: add, path: /spec/env/DB_PASSWORD, value: VALUE}]\n",
    "one operation": PATCH + "json: {op: add, path: /spec/env/DB_PASSWORD, value: VALUE}\n",
}


@pytest.mark.parametrize("place", WRONG_PLACES)
def test_a_secret_in_a_wrong_place_is_hidden(tmp_path: Path, place: str) -> None:
    value = "Zq7xWv9LpKd4TnB"
    text = WRONG_PLACES[place].replace("VALUE", value)
    root = write(tmp_path, job=HEADER, overlay=text) if "Overlay" in text else write(tmp_path, job=text)

    assert not [shown for shown in (*show_all(root), report(root).data) if value in shown]
