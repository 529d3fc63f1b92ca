"""Who is to blame: the smallest parts of a tree without which a verdict would be another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobgen.model.data import Data, TracedKey, TracedScalar

Path = tuple[str | int, ...]
Verdict = Callable[[Data], str | bool]
"""How a tree fails, or nothing if it passes."""

TRIALS = 200
"""How often a verdict may be asked for, for one culprit."""
_MOST = 10


def culprits(tree: Data, fails: Verdict, trials: int = TRIALS) -> Iterator[Path]:
    """The parts of a plain tree that make it fail, one after the other, until what is left passes."""
    gone: frozenset[Path] = frozenset()
    for _ in range(_MOST):
        verdict = fails(without(tree, gone))
        path = _Search(tree, fails, verdict, trials).smallest(gone, (), decides=False) if verdict else ()
        if not path:
            return
        yield path
        gone |= {path}


def culprit(tree: Data, fails: Verdict, trials: int = TRIALS) -> Path:
    """The smallest part without which the tree passes; nothing if there is none but the whole."""
    return next(culprits(tree, fails, trials), ())


def without(tree: Data, gone: frozenset[Path]) -> Data:
    """The tree without some of its parts; what lies beside their ways is shared."""
    if not gone:
        return tree
    below: dict[str | int, set[Path]] = {}
    for path in gone:
        below.setdefault(path[0], set()).add(path[1:])
    left = {
        step: without(child, frozenset(below[step])) if step in below else child
        for step, child in _children(tree)
        if () not in below.get(step, ())
    }
    return left if isinstance(tree, dict) else list(left.values())


def node_at(tree: Data, path: Path) -> Data:
    """What a problem stands on: the scalar at the path, or the key that leads to the mapping or list there."""
    leads: Data = None
    for step in path:
        leads = next((key for key in tree if key == step), None) if isinstance(tree, dict) else None
        tree = tree[step]
    return leads if isinstance(leads, TracedKey) and type(tree) is not TracedScalar else tree


def _children(tree: Data) -> list[tuple[str | int, Data]]:
    if isinstance(tree, dict):
        return list(tree.items())
    return list(enumerate(tree)) if isinstance(tree, list) else []


class _Search:
    """One search, which ends when its trials are used up."""

    def __init__(self, tree: Data, fails: Verdict, verdict: str | bool, trials: int) -> None:
        self.tree = tree
        self.fails = fails
        self.verdict = verdict
        self.trials = trials

    def smallest(self, gone: frozenset[Path], path: Path, *, decides: bool) -> Path:
        """The first scalar at or below a path that decides; else the first mapping or list that does.

        Without a part that is only read the tree fails in another way; what decides may lie inside of it.
        """
        steps = [step for step in self._steps(path) if (*path, step) not in gone]
        best: Path = ()
        for step in steps:
            verdict = self._without(gone | {(*path, step)})
            if verdict != self.verdict:
                found = self.smallest(gone, (*path, step), decides=not verdict)
                if found and not self._steps(found):
                    return found
                best = best or found
        return best or self._alone(gone, path, steps) or (path if decides else ())

    def _alone(self, gone: frozenset[Path], path: Path, steps: list[str | int]) -> Path:
        """Where several parts fail each for itself, no removal helps: the first that fails without the others."""
        for step in steps if len(steps) > 1 else ():
            rest = gone | {(*path, other) for other in steps if other != step}
            if self.trials > 0 and self._without(rest) == self.verdict:
                verdict = self._without(rest | {(*path, step)})
                found = self.smallest(rest, (*path, step), decides=not verdict) if verdict != self.verdict else ()
                if found:
                    return found
        return ()

    def _without(self, gone: frozenset[Path]) -> str | bool:
        self.trials -= 1
        return self.fails(without(self.tree, gone)) if self.trials >= 0 else self.verdict

    def _steps(self, path: Path) -> list[str | int]:
        node = self.tree
        for step in path:
            node = node[step]
        return [step for step, _ in _children(node)]
