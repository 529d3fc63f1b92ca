"""Command lines as lists and as scripts."""

import pytest

from jobgen.k8s.mpi_launches import calls_mpirun, split_mpi_launch
from jobgen.k8s.shell.commands import find_option_values, parse_command, split_words
from jobgen.k8s.shell.steps import list_steps, list_words, read_commands, read_words


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["mpirun", "-np", "4", "train"], True),
        (["/opt/bin/mpirun", "--np=4", "train"], True),
        (["python", "train.py", "--launcher=mpirun"], False),
        (["sh", "-c", "cd /x && horovodrun \\\n -np 2 a"], True),
        (["sh", "-c", "# mpirun -np 3\na"], False),
        (["sh", "-c", "bash <<EOF\nmpirun -np 2 a\nEOF"], True),
        (["sh", "-c", "mpirun -np 2 a && if [ -f x ]; then b"], True),
        (["sh", "-c", "X=$(mpirun -np 2 a)"], True),
        (["sh", "-c", "it's broken; mpirun -np 2 a"], False),
        ([4, None], False),
    ],
)
def test_calls_of_mpirun(words, found):
    assert calls_mpirun(words) is found


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["mpirun", "-x", "A=1", "--mca", "btl", "^openib", "-bind-to", "none", "-np", "4", "a"], ["a"]),
        (["mpirun", "--hostfile=h", "--oversubscribe", "-H", "a,b", "a", "-n", "9"], ["a", "-n", "9"]),
        (["mpirun", "-np"], []),
    ],
)
def test_options_of_mpirun_are_apart_from_its_program(words, program):
    assert split_mpi_launch(words) == (words[1 : len(words) - len(program)], program)


def test_values_of_an_option():
    words = parse_command(
        ["torchrun", "--nproc_per_node=2", "--nproc-per-node", "4", "-nproc-per-node", "--nproc_per_node"]
    )

    assert [word.text for word in find_option_values(words, "nproc-per-node")] == ["2", "4"]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("a | b && c; d", [("a", "b"), ("c",), ("d",)]),
        ("a 2>&1 | tee log\necho x # | y\n", [("a", "tee log"), ("echo x",)]),
        ("a \\\n | b |\n c\n", [("a", "b", "c")]),
        ("x \"a|b\" '|' \\| $(c | d) `e | f` | g", [("x a|b | | $(c | d) `e | f`", "g")]),
        ('a "$(b "c|d" | e)" | f', [('a $(b "c|d" | e)', "f")]),
        ("if a; then b | c; fi", [("a",), ("b", "c")]),
        ("while a; do b; done | c", [("a",), ("b",), ("", "c")]),
        ("f() { a; }; case $x in y) f ;; esac", [("a",), ("f",)]),
        ("(a | b) || c", [("a", "b"), ("c",)]),
        ("a &> log & a >| b; wait", [("a",), ("a",), ("wait",)]),
        ("# nothing", []),
        ("cat <<EOF\na | b\nEOF", [("cat",)]),
        ("a $A ${B:-c} $((1 + 2)) $[3] $$(date) <(d)", [("a $A ${B:-c} $((1 + 2)) $[3] $(date) <(d)",)]),
        # What another tool replaces is no fault.
        ("a --lr=${trial.lr} <NAME> | b", [("a --lr=${trial.lr}", "b")]),
        ('a --lr=${{ matrix.lr }} "${x.y}"', [("a --lr=${{ matrix.lr }} ${x.y}",)]),
        ("a | time b", [("a", "b")]),
        # What is not understood is not guessed.
        ("echo 'open | b", []),
        ('echo "$(open" | b', []),
    ],
)
def test_script_is_split_into_pipelines(script, found):
    steps = list_steps(read_commands(script))
    assert [tuple(" ".join(list_words(command)) for command in step.commands) for step in steps] == found


@pytest.mark.parametrize(
    ("script", "end"), [("a; b", ";"), ("a\nb", "\n"), ("a & b", "&"), ("a || b", "||"), ("a", "")]
)
def test_a_step_knows_the_sign_behind_it(script, end):
    assert next(list_steps(read_commands(script))).end == end


def test_words_before_a_command_are_no_part_of_it():
    assert read_words("LR=1 exec python 'a b.py'") == [("python", "a b.py")]
    assert read_words("env LR=1 python a.py; echo 'open") == [("python", "a.py")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torchrun  train.py", ("torchrun", "train.py")),
        ("torchrun 'a b.py'\n", ("torchrun", "a b.py")),
        ("exec a 'b'", ("exec", "a", "b")),
        ("a; b", ()),
        ("a &", ()),
        ("! a", ()),
        ("A=1 b", ()),
        ("A=1 b $C", ()),
        ("a $(b)", ("a", "$(b)")),
        ("a 'b", ()),
        ("a > b", ()),
    ],
)
def test_words_of_a_text_that_is_one_command(text, words):
    assert split_words(text) == words


def test_a_script_is_split_up_to_a_length():
    assert len(read_commands("a | b # c\n" * 10_000)) == 10_000
    assert read_commands("a | b # c\n" * 10_001) == ()
