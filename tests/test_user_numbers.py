"""What ends for certain: no loop runs as often as a number that users write, and no handler hides a deadline."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from moduletrees import find_nodes, parse_module

ROOT = Path(__file__).parent.parent / "jobgen"
NUMBERS = re.compile(
    r"(?:^|_)(?:amount|completions|count|gpus|instances|nodes|nproc|parallelism|pods|processes|replicas|size|slices|slots"
    r"|times|total|wanted|workers)$"
)
"""The names of numbers that users may have written."""
BOUNDED = {
    ("check/cel/cost.py", "range(count)"): "the number of values of a list",
    ("check/cel/lists.py", "range(size)"): "_LONGEST items",
    ("engine/workers.py", "range(count)"): "the processes of jobgen",
    ("engine/workers.py", "range(processes - 1)"): "the processes of jobgen",
    ("features/convert/migrate/migrate_job.py", "range(count)"): "the members of a sweep",
    ("features/editor/values.py", "range(count - 1)"): "the columns of a table",
    ("features/kueue/cluster_objects.py", "range(group.size)"): "MAX_NODES of a cluster",
    ("features/kueue/job_workloads.py", "range(total)"): "MAX_WORKLOADS of a job",
    ("features/kueue/queues/what_if.py", "range(1, wanted - len(nodes) + 1)"): "MAX_NODES of a cluster",
    ("features/convert/migrate/repository.py", "range(first, first + count)"): "the patches of an overlay",
    ("rendering/network.py", "range(each.pods)"): "the length of a variable that Linux starts a process with",
}
"""Loops over numbers that something else limits, with what that is."""


SEQUENCES = (ast.List, ast.ListComp, ast.Tuple, ast.JoinedStr)


def name_function(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_sequence(node: ast.expr) -> bool:
    return isinstance(node, SEQUENCES) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def find_number(node: ast.expr) -> bool:
    """Return True if an expression has a number of users that `min` does not limit and `len` does not count."""
    if isinstance(node, ast.Compare):
        return False
    if isinstance(node, ast.Call):
        name = name_function(node)
        return name not in ("len", "min") and any(map(find_number, node.args))
    if isinstance(node, ast.Name):
        return NUMBERS.search(node.id) is not None
    if isinstance(node, ast.Attribute):
        return NUMBERS.search(node.attr) is not None
    return any(find_number(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def list_loops(tree: ast.AST) -> list[str]:
    """Return the ranges, repetitions and products with lists that have such a number."""
    found = []
    for node in find_nodes(tree, ast.Call, ast.BinOp):
        if isinstance(node, ast.Call) and name_function(node) in ("range", "repeat"):
            times = [keyword.value for keyword in node.keywords if keyword.arg == "times"]
            arguments = [*node.args[1:2], *times] if name_function(node) == "repeat" else node.args[:2]
            found += [ast.unparse(node)] * any(map(find_number, arguments))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = (node.left, node.right)
            found += [ast.unparse(node)] * (any(map(is_sequence, sides)) and any(map(find_number, sides)))
    return found


def test_no_loop_runs_as_often_as_a_number_of_users() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), loop)
        for path in ROOT.rglob("*.py")
        for loop in list_loops(parse_module(path))
    }

    assert found == BOUNDED.keys()


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("[x for _ in range(spec.replicas)]", True),
        ("range(1, slots + 1)", True),
        ("[host] * worker_count", True),
        ("repeat(pod, job.parallelism)", True),
        ("range(int(nproc))", True),
        ("itertools.repeat(pod, times=job.parallelism)", True),
        ("',' * slots", True),
        ("[None for _ in pods] * replicas", True),
        ("'s' * (count != 1)", False),
        ("range(min(replicas, MAX_PODS))", False),
        ("range(len(pods))", False),
        ("2 * replicas", False),
    ],
)
def test_such_loops_are_found(code: str, is_found: bool) -> None:
    assert bool(list_loops(ast.parse(code))) is is_found


def list_hiding(tree: ast.AST) -> list[int]:
    """Return the lines of handlers that also take what ends a command, and do not raise it again."""
    found = []
    for node in find_nodes(tree, ast.ExceptHandler):
        names = {each.id for each in ast.walk(node.type) if isinstance(each, ast.Name)} if node.type else set()
        is_wide = node.type is None or "BaseException" in names
        is_raised = any(isinstance(each, ast.Raise) and each.exc is None for each in ast.walk(node))
        found += [node.lineno] * (is_wide and not is_raised)
    return found


def test_no_handler_hides_a_deadline() -> None:
    """Deadlines are no `Exception`: neither a rule nor a feature takes them for a fault of its own."""
    hidden = {path.relative_to(ROOT).as_posix(): list_hiding(parse_module(path)) for path in ROOT.rglob("*.py")}

    assert {path: lines for path, lines in hidden.items() if lines} == {}
    assert list_hiding(ast.parse("try:\n    x\nexcept BaseException:\n    pass\n")) == [3]


def test_what_ends_an_answer_or_a_command_is_no_exception_of_a_rule() -> None:
    from jobgen.cli.interrupt import EndedError
    from jobgen.features.gitops.commands.cmp import _EndedError

    assert not issubclass(_EndedError, Exception)
    assert not issubclass(EndedError, Exception)
