"""Scripts that are interpreted start the programs that a real bash starts, or say what they do not know."""

import shutil
import stat
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobgen.features.launch.shell.interpreter import expand_references, run_command
from jobgen.features.launch.shell.values import Word, to_word
from jobgen.k8s.shell.commands import parse_command, split_words
from jobgen.k8s.shell.steps import read_commands

NAMES = ("A", "B", "C")
ENV = {"A": "8", "B": "two words", "N": "3"}


def run(script, env=None, files=None, *words):
    """The programs of a script, each with its words; unknown words are None."""
    command = [Word(text, None) for text in ("bash", "-c", script, *words)]
    known = {name: Word(text, None) for name, text in (ENV if env is None else env).items()}
    return run_command(command, known, (files or {}).get)


def told(script, env=None, files=None, *words):
    return [[word.text for word in call.words] for call in run(script, env, files, *words)]


# Scripts of the supported subset, from parts that always end.
plain = st.text("ab1-=./", min_size=1, max_size=4)
number = st.integers(0, 9).map(str)
name = st.sampled_from(NAMES)
expression = st.one_of(
    number,
    st.sampled_from(("A", "N", "$A", "${N}")),
    st.tuples(number, st.sampled_from("+ - * < == && ||".split()), st.sampled_from(("A", "N", "2"))).map(" ".join),
)
parameter = st.one_of(
    name.map("${}".format),
    name.map("${{{}}}".format),
    st.tuples(name, st.sampled_from((":-", "-", ":+", "+")), plain).map(
        lambda each: f"${{{each[0]}{each[1]}{each[2]}}}"
    ),
    st.tuples(name, st.sampled_from(("%", "%%", "#", "##")), st.sampled_from(("*o", "w*", "8", "?", "t", "* "))).map(
        lambda each: f"${{{each[0]}{each[1]}{each[2]}}}"
    ),
    name.map("${{#{}}}".format),
    st.tuples(name, st.sampled_from(("/", "//")), st.sampled_from(("o/0", "w/", "8/9"))).map(
        lambda each: f"${{{each[0]}{each[1]}{each[2]}}}"
    ),
    name.map("${{{}:1:2}}".format),
    expression.map("$(({}))".format),
    st.tuples(plain, name).map(lambda each: f"$(echo {each[0]} ${each[1]})"),
    st.sampled_from(("$#", '"$@"', "$1", "$?")),
)
piece = st.one_of(
    plain,
    st.text("ab $#;&|", max_size=5).map("'{}'".format),
    st.lists(st.one_of(plain, parameter.filter(lambda each: '"' not in each), st.just(" ")), max_size=3).map(
        lambda parts: f'"{"".join(parts)}"'
    ),
    parameter,
)
word = st.lists(piece, min_size=1, max_size=3).map("".join)
words = st.lists(word, max_size=3).map(" ".join)
call = st.tuples(st.sampled_from(("p0", "p1")), words).map(" ".join)
assignment = st.tuples(name, word.filter(lambda each: '"$@"' not in each)).map("=".join)
condition = st.one_of(
    st.tuples(word, st.sampled_from(("=", "!=")), word).map(lambda each: f'[ "x{each[1]}" {each[1]} "x=" ]'),
    name.map(lambda each: f'[ -z "${each}" ]'),
    name.map(lambda each: f"[[ -n ${each} && ${each} == *o* ]]"),
    expression.map("(({}))".format),
    st.sampled_from(("true", "false", "! true")),
)
simple = st.one_of(
    call,
    assignment,
    assignment.map("export {}".format),
    st.tuples(assignment, call).map(" ".join),
    st.tuples(name, call).map(lambda each: f"env {each[0]}=z {each[1]}"),
    st.lists(word, max_size=3).map(lambda each: f"set -- {' '.join(each)}"),
    name.map("unset {}".format),
    st.tuples(name, words).map(lambda each: f'L=({each[1]})\np0 "${{L[@]}}" ${{#L[@]}}'),
    call.map(lambda each: f"exec {each}").map("( {} )".format),
    st.lists(plain, min_size=1, max_size=2).map(lambda each: f"p1 \\\n  {' '.join(each)}"),
    st.tuples(plain, name).map(lambda each: f"cat > /dev/null <<EOF\np1 {each[0]} ${each[1]}\nEOF"),
)


def compound(inner):
    body = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        st.tuples(condition, body, body).map(lambda each: f"if {each[0]}; then\n{each[1]}\nelse\n{each[2]}\nfi"),
        st.tuples(words, body).map(lambda each: f"for i in {each[0]}; do p0 $i\n{each[1]}\ndone"),
        st.tuples(name, body).map(lambda each: f"case ${each[0]} in\n8|a) {each[1]}\n;;\n*w*) p0 w ;;\n*) p1 ;;\nesac"),
        st.tuples(condition, body).map(lambda each: f"{each[0]} && {{\n{each[1]}\n}} || p1 no"),
        body.map("(\n{}\n)".format),
        st.tuples(body, words).map(lambda each: f'f() {{\n{each[0]}\np0 "$@"\n}}\nf {each[1]}'),
        body.map(lambda each: f"n=0\nwhile [ $n -lt 2 ]; do\nn=$((n + 1))\n{each}\ndone"),
        call.map(lambda each: f"{each} | tee -a /dev/null"),
    )


scripts = st.lists(st.recursive(simple, compound, max_leaves=6), min_size=1, max_size=4).map("\n".join)
STUB = '#!/bin/sh\nprintf "%s\\0" "${0##*/}" "$@" "E=$C" >> "$LOG"\nprintf "\\n\\0" >> "$LOG"\n'


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    for program in ("p0", "p1"):
        path = folder / program
        path.write_text(STUB)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


def run_bash(script, folder, *arguments):
    log = folder / "log"
    log.write_text("")
    env = {**ENV, "PATH": f"{folder}:/usr/bin:/bin", "LOG": str(log)}
    subprocess.run(
        ["bash", "-c", script, "sh", *arguments], env=env, cwd=folder, capture_output=True, timeout=60, check=False
    )
    calls = log.read_bytes().decode().split("\n\0")[:-1]
    return [call.split("\0")[:-1] for call in calls]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(scripts)
def test_programs_are_those_of_bash(stubs, script):
    expected = run_bash(script, stubs, "one", "two words")
    calls = run(script, None, None, "sh", "one", "two words")
    found = [call for call in calls if call.words[0].text in ("p0", "p1")]
    if any(not call.is_certain or any(word.text is None for word in call.words) for call in found) or not calls:
        return  # it says that it does not know
    shown = [[*(word.text for word in call.words), f"E={_text(call.env.get('C'))}"] for call in found]
    if not any("\ue000" in text for each in shown for text in each):
        assert shown == expected, script


def _text(value):
    return "" if value is None else "\ue000" if value.text is None else value.text


@pytest.mark.parametrize(
    ("script", "programs"),
    [
        ("torchrun --nnodes=$N t.py", [["torchrun", "--nnodes=3", "t.py"]]),
        (
            "python a.py --nnodes 9 && exec torchrun t.py; echo never",
            [["python", "a.py", "--nnodes", "9"], ["torchrun", "t.py"]],
        ),
        ("if nvidia-smi; then a; else b; fi", [["nvidia-smi"], ["a"], ["b"]]),
        ("a $UNSET ${UNSET:-9} $HOME", [["a", "9", None]]),
        ("a --id=$(date) b", [["date"], ["a", None, "b"]]),
        ("source /etc/job.env\na $A", [["a", None]]),
        (". /opt/venv/bin/activate\na $A", [["a", "8"]]),
        ("timeout -k 5 60 nice -n 5 a b", [["a", "b"]]),
        ("sh -euc 'a $0 $1' x y", [["a", "x", "y"]]),
        ("/scripts/run.sh 4", [["torchrun", "--nnodes=4"]]),
        ("cat > h <<EOF\nx slots=$A\nEOF\na", [["a"]]),
        ("while true; do a; sleep 1; done; b", [["a"], ["sleep", "1"]]),
        ("set -e\nfalse\na", []),
        ("set -u\na $UNSET", []),
        ("a ~/x *.py {1,2}", [["a", None, None, None]]),
        ("read X\na $X", [["a", None]]),
        ("a 2>&1 | tee log", [["a"]]),
        ("for x in $(seq 2); do a $x; done", [["a", "1"], ["a", "2"]]),
        ("a <(b) 'unclosed", []),
        ("IFS=,\na $B", [["a", None]]),
    ],
)
def test_programs_of_scripts(script, programs):
    assert told(script, files={"/scripts/run.sh": "#!/bin/bash\ntorchrun --nnodes=$1\n"}) == programs


@pytest.mark.parametrize(
    ("script", "is_certain"),
    [
        ("a", True),
        ("[ -f /x ] && a", False),
        ("b || a", False),
        ("b && a", True),
        ("if b; then exit 1; fi; a", True),
        ("if b; then exec c; fi; a", False),
        ("case $HOME in x) a;; *) b;; esac", False),
        ("until b; do a; done", False),
        ('if [ "$A" = 8 ]; then a; fi', True),
    ],
)
def test_programs_under_unknown_conditions_are_not_certain(script, is_certain):
    assert [call.is_certain for call in run(script) if call.words[0].text == "a"] == [is_certain]


# Each leaves N with the value 2, for a reason that a reading from top to bottom does not see.
ODD = (
    "{ N=4; } & wait",
    "f() { N=4; }; f & wait",
    "N=4 & wait",
    "export N=4 & wait",
    "for i in 1; do N=4; done & wait",
    "if true; then N=4; fi & wait",
    "true && N=4 & wait",
    "N=4; shopt -s lastpipe; echo 2 | read N",
    "N=4; shopt -s lastpipe; true | { N=2; }",
    "declare -i N=1; N+=1",
    "typeset -i N; N=1+1",
    "f() { local -i M=1; M+=1; N=$M; }; f",
    "declare -i N=4; N=6-4",
    "declare -i N=1; declare N+=1",
    "N=$[1+1]",
    "N=$[ $[1] + 1 ]",
    "N=4; declare -n R=N; R=2",
    "N=4; declare -n R; R=N; R=2",
    "N=4; set_to() { local -n R=$1; R=2; }; set_to N",
    "readonly N; eval 'N=4' || true",
    "trap 'N=2' DEBUG; N=4; true",
    "trap 'N=2' USR1; N=4; kill -USR1 $$; true",
    "N=4; trap reset USR1; reset() { N=2; }; kill -USR1 $$; true",
    "N=4; trap 'N=2' ERR; false; true",
    "N=4; a=(1 2 3); : ${a[N=2]}",
    "N=4; a[N=2]=1",
    "N=4; x=abc; : ${x:N=2:1}",
    "N=4; (( N = ${#HOME} * 0 + 2 ))",
    "N=4; M=$(echo 2 | tee); (( N = M ))",
    "(( 0 && (N = 4) ))",
    "(( 1 || (N = 4) ))",
    "N=4; while getopts n: o -n 2; do case $o in n) N=$OPTARG;; esac; done",
    "[ -n x ] && f() { N=2; }; N=4; f",
    "shopt -s expand_aliases; alias p0='p0 2; true'",
    "shopt -s expand_aliases; alias set_n='N=2'; N=4\nset_n",
    "N=4; export N; N=2; p1() { N=4; }; nohup p1 > /dev/null",
    "p0() { command p0 2; }; export -f p0; bash -c 'p0 4'; exit",
    "declare -l N=2",
    "false; N=$(( $? + 1 ))",
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("script", ODD)
def test_no_value_is_certain_that_bash_has_not(stubs, script):
    script = f"N=2\n{script}\np0 $N"
    calls = [call for call in run_bash(script, stubs) if call[0] == "p0"]
    assert all(call[1] == "2" for call in calls), calls
    found = [call for call in run(script) if call.words[0].text == "p0"]
    assert all(call.words[1].text in ("2", None) for call in found), found


@pytest.mark.parametrize(
    ("script", "is_certain"),
    [
        ("a 4 || a 2", False),
        ("a 4 || exit 1; b", True),
        ("a 4 || { sleep 5; exit 1; }; b", True),
        ("a 4 || { sleep 5; b; }", False),
        ("a 4 || true; b", False),
        ("a 4 || a 4", True),
        ("a 4 || true", True),
        ("if a 4; then exit 0; fi; b", False),
        ("if ! a 4; then b; fi", False),
        ("if ! a 4; then exit 1; fi; b", True),
        ("a 4 && exit; b", False),
        ("a 4 && exit", True),
        ("for n in 4 2; do a $n && break; done", False),
        ("for n in 1 2 3; do a 4 && break; sleep 9; done", True),
        ("while true; do a 4 && break; sleep 9; done; b", True),
        ("n=4; until a $n; do n=2; done", False),
        ("until a 4; do sleep 9; done; b", True),
        ("f() { a 4 && return; b; }; f", False),
        ("a 4; if [ $? -ne 0 ]; then b; fi", False),
        ("a 4; rc=$?; if [ $rc != 0 ]; then b; fi", False),
        ("a 4; rc=$?; echo $rc; exit $rc", True),
        ("pip install x && exec a 4", True),
        ("a 4 & b & wait", True),
    ],
)
def test_programs_that_others_stand_in_for_are_not_certain(script, is_certain):
    first = next(call for call in run(script) if call.words[0].text == "a")
    assert first.is_certain == is_certain


@pytest.mark.parametrize(
    "script",
    [
        "f() { f; f; }; f",
        'f() { "$@" "$@"; }; f f f f f f',
        "set -- a b; " + 'set -- "$@" "$@"; ' * 40 + "p",
        "L=(a b); " + 'L=("${L[@]}" "${L[@]}"); ' * 40 + "p",
        "x=" + "$((" * 600 + "1" + "))" * 600 + "; p",
        "x=" + "$[" * 600 + "1" + "]" * 600 + "; p",
        "f()" * 5000 + "{ p; }",
        "x='" + "1?" * 98 + "x'; p $((x))",
        "[[ " + "! " * 40_000 + "a ]]; p",
        "[ " + "( " * 40_000 + "a ]; p",
        "x=$((" + "1+" * 40_000 + "1)); p",
        "trap 'f' DEBUG; " + "f() { trap f DEBUG; }; " * 99,
        "a=x; " + "a=$a$a; " * 60 + "p $a",
        "for i in $(seq 999); do for j in $(seq 999); do p; done; done",
        "(" * 5000,
        "$(" * 500 + ")" * 500,
        "p ${A%" + "*a" * 200 + "}",
        "n=0; while [ $n -lt 99999999 ]; do n=$((n + 1)); done",
        "p " + "`" * 999,
        "x" * 200_000,
        "p $((9**9**9**9))",
        "if " * 2000,
        'p "${A:-' * 300,
    ],
)
def test_hostile_scripts_end(script):
    assert len(run(script)) <= 201


def test_long_texts_are_not_split():
    text = f"'{'a' * 1_000_000}' b"
    assert parse_command([text]) == []
    assert split_words(text) == read_commands(text) == ()


def test_references_of_kubernetes():
    env = {"A": Word("8", None), "B": Word(None, None)}
    assert expand_references("x$(A)$$(A)$(C)$A", env) == "x8$(A)$(C)$A"
    assert to_word(expand_references("--n=$(B)", env), None) == Word(None, None, "--n=")
