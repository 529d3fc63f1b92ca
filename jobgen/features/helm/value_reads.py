"""Which values each line of a template writes: its actions are followed as helm runs them, also into named templates.

What a variable or the current value stands for is known as the values that it may be. Whether a value is really the
one that was written is for the text to tell; nothing here is certain by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias
from weakref import WeakKeyDictionary

from jobgen.features.helm.charts import Chart
from jobgen.features.helm.expressions import Call, Expression, Lookup, Text, read_expression
from jobgen.features.helm.subcharts import list_charts
from jobgen.features.helm.template_text import ANY_ITEM, ANY_KEY, Path, Template, read_template
from jobgen.model.named_tuple import NamedTuple

Place = tuple[str, int]
"""A line of a template."""
_MAX_STEPS = 20_000
_MAX_DEPTH = 12
_MAX_TERMS = 200


class Origin(NamedTuple):
    """What wrote a line."""

    place: Place
    call: Place
    """The line of the file of the chunk that includes it; the same one if that wrote it."""
    turn: int = 0
    """How many times both wrote a line before."""
    turns: int = 1
    """How many times they do so in all."""


class Read(NamedTuple):
    """A value that is read, or a part of it."""

    chart: Path
    """The keys of the chart whose values it is one of: empty for the outermost chart."""
    path: Path = ()
    has_default: bool = False
    """True if something else is written if it is empty."""
    is_direct: bool = True
    """False if a named template reads it, which the line only includes."""

    @property
    def name(self) -> Path:
        """Where it is in the values of the outermost chart."""
        return self.path if self.path[:1] == ("global",) else (*self.chart, *self.path)

    def follow(self, step: str) -> Read:
        """Return a part of it."""
        return self._replace(path=(*self.path, step))


class _Context(NamedTuple):
    """All that a template of a chart gets."""

    chart: Path


class _Fields(NamedTuple):
    """What `dict` returns."""

    fields: tuple[tuple[str, Terms], ...]
    kind: str = "dict"
    """Without it, an empty one is equal to a context."""


_Term: TypeAlias = "Read | _Context | _Fields"
Terms: TypeAlias = "tuple[_Term, ...]"
"""What an expression may stand for; empty if that is not known."""
Records = Mapping[Place, frozenset[Read]]
_WRAPPED = frozenset(("default", "coalesce", "ternary", "or"))
# They say something about their arguments, and return none of them.
_TESTS = frozenset(
    "eq ne lt le gt ge not empty len kindIs kindOf typeIs typeOf hasKey hasPrefix hasSuffix has contains fail".split()
)


_KNOWN: WeakKeyDictionary[Chart, ValueReads] = WeakKeyDictionary()


def read_values(chart: Chart) -> ValueReads:
    """Return the values that the templates of a chart read."""
    if chart not in _KNOWN:
        _KNOWN[chart] = ValueReads(chart)
    return _KNOWN[chart]


class ValueReads:
    """The values that the lines of a chart's templates may write."""

    def __init__(self, chart: Chart) -> None:
        """Start with a chart; its templates are followed when a line is asked for."""
        texts = {path: read_template(text) for path, text in chart.templates.items()}
        self._templates = {path: each for path, each in texts.items() if each is not None}
        self._charts: dict[str, list[Path]] = {}
        for folder, keys in list_charts(chart.files):
            self._charts.setdefault(folder, []).append(keys)
        self._defined = {name: found for path in self._templates for name, found in self._list_defined(path)}
        self._known: dict[tuple[str, Terms, Path], Records] = {}
        self._files: dict[str, dict[Place, dict[Place, set[Read]]]] = {}
        self._steps = 0
        self.is_exact = len(self._templates) == len(chart.templates)
        """False if not all actions were followed."""
        self.whole: set[Read] = set()
        """What expressions use as it is; loops, and what a named template gets, use parts of it only."""
        self.parts: set[Read] = set()

    def follow_all(self) -> None:
        """Follow all files that helm renders."""
        for path in self._templates:
            if not _is_partial(path):
                self._follow_file(path)

    def find(self, file: str, call: Place, place: Place) -> frozenset[Read]:
        """Return what a line may write that a line `call` of a file includes, or which is that line itself."""
        lines = self._follow_file(file).get(call, {})
        return frozenset(lines[place]) if place in lines else self.find_all(place)

    def find_all(self, place: Place) -> frozenset[Read]:
        """Return what a line may write, whatever includes it."""
        if not _is_partial(place[0]):
            lines = self._follow_file(place[0]).values()
            return frozenset(read for each in lines for read in each.get(place, ()))
        return frozenset(self._included.get(place, ()))

    @cached_property
    def _included(self) -> dict[Place, set[Read]]:
        """What lines may write, by all files that include them."""
        found: dict[Place, set[Read]] = {}
        self.follow_all()
        for lines in (each for calls in self._files.values() for each in calls.values()):
            for place, reads in lines.items():
                found.setdefault(place, set()).update(reads)
        return found

    def find_in_file(self, path: str) -> frozenset[Read]:
        """Return what the lines of a file may write, and those that they include."""
        lines = (each for several in self._follow_file(path).values() for each in several.values())
        return frozenset(read for reads in lines for read in reads)

    def _follow_file(self, path: str) -> dict[Place, dict[Place, set[Read]]]:
        if path in self._files:
            return self._files[path]
        found = self._files[path] = {}
        template = self._templates.get(path)
        folder = path[: path.rfind("templates/")] if "templates/" in path else ""
        for chart in self._charts.get(folder, ()) if template else ():
            follower = _Follower(self, path, chart, 0)
            follower.run(0, None, (_Context(chart),))
            for call, lines in follower.by_line.items():
                for place, reads in lines.items():
                    found.setdefault(call, {}).setdefault(place, set()).update(reads)
        return found

    def _list_defined(self, path: str) -> Iterator[tuple[str, tuple[str, int]]]:
        """Yield the named templates of a file, with the action that begins each."""
        for number, action in enumerate(self._templates[path].actions):
            if action.keyword in ("define", "block"):
                name = _find_name(action.code.removeprefix(action.keyword))
                if name is not None:
                    yield name, (path, number)

    def has_context(self, place: Place) -> bool:
        """Return True if `.` is the context of the chart in a line: no block and no named template changes it."""
        template = self._templates.get(place[0])
        blocks: list[str] = []
        for action in template.actions if template else ():
            line = template.line_at(action.start) if template else 0
            if line > place[1]:
                break
            if action.keyword in _OPENING:
                blocks.append(action.keyword)
            elif action.keyword == "end" and blocks and line < place[1]:
                blocks.pop()
        return template is not None and all(each == "if" for each in blocks)

    def list_defined_lines(self, path: str) -> set[int]:
        """Return the lines of a template that are those of named templates."""
        template = self._templates.get(path)
        found: set[int] = set()
        depth = start = 0
        for action in template.actions if template else ():
            if action.keyword == "define":
                depth, start = 1, template.line_at(action.start) if template else 0
            elif depth:
                depth += (action.keyword in _OPENING) - (action.keyword == "end")
                if not depth and template:
                    found |= set(range(start, template.line_at(action.start) + 1))
        return found

    def include(self, name: str, arguments: Terms, chart: Path, depth: int) -> Records:
        """Return what a named template reads that gets some arguments."""
        key = (name, arguments, chart)
        if key not in self._known and name in self._defined and depth < _MAX_DEPTH:
            # A template that includes itself reads nothing more.
            self._known[key] = {}
            path, number = self._defined[name]
            follower = _Follower(self, path, chart, depth + 1)
            follower.run(number + 1, number, arguments)
            self._known[key] = follower.collect()
        return self._known.get(key, {})

    def is_defined(self, name: str) -> bool:
        """Return True if a chart here defines a named template."""
        return name in self._defined

    def count(self) -> bool:
        """Count a step; return False if there were too many."""
        self._steps += 1
        self.is_exact = self.is_exact and self._steps <= _MAX_STEPS
        return self._steps <= _MAX_STEPS

    def find_template(self, path: str) -> Template:
        """Return a template that can be read."""
        return self._templates[path]


def _is_partial(path: str) -> bool:
    return path.rpartition("/")[2].startswith("_")


def _find_name(code: str) -> str | None:
    found = read_expression(code)
    first = found.arguments[0] if isinstance(found, Call) and not found.name and found.arguments else found
    return first.text if isinstance(first, Text) else None


class _Follower:
    """Runs the actions of a file, or of a named template, without values."""

    def __init__(self, reads: ValueReads, path: str, chart: Path, depth: int) -> None:
        self.reads = reads
        self.path = path
        self.chart = chart
        self.depth = depth
        self.template = reads.find_template(path)
        self.by_line: dict[Place, dict[Place, set[Read]]] = {}
        """What the lines read, by the line of this file that includes them."""
        self.line = 0
        self.dot: Terms = ()
        self.variables: dict[str, Terms] = {}
        self.scopes: list[tuple[Terms, dict[str, Terms]]] = []

    def run(self, start: int, opening: int | None, dot: Terms) -> None:
        """Follow the actions from one on, to the end of the block that `opening` begins."""
        self.dot, self.variables = dot, {"$": dot}
        skipped = 0
        for action in self.template.actions[start:]:
            keyword = action.keyword
            if not self.reads.count() or (keyword == "end" and not self.scopes and opening is not None and not skipped):
                return
            if skipped or keyword == "define":
                skipped += (keyword in _OPENING) - (keyword == "end")
            else:
                self.line = self.template.line_at(action.start)
                self.step(keyword, action.code)

    def step(self, keyword: str, code: str) -> None:
        """Follow an action."""
        if keyword in _OPENING:
            self.scopes.append((self.dot, self.variables))
            self.variables = dict(self.variables)
            self.dot = self.enter(keyword, code, self.dot)
        elif keyword == "end" and self.scopes:
            self.dot, self.variables = self.scopes.pop()
        elif keyword == "else" and self.scopes:
            # What the block sets is not set here.
            dot, variables = self.scopes[-1]
            rest = code.removeprefix("else").strip()
            self.variables = dict(variables)
            self.dot = self.enter(rest.partition(" ")[0], rest, dot) if rest else dot
        elif keyword == "=":
            name, _, after = code.partition("=")
            self.variables[name.rstrip(": ")] = self.evaluate(read_expression(after), self.dot, is_whole=False)
        elif not keyword and code:
            self.write(self.evaluate(read_expression(code), self.dot))

    def enter(self, keyword: str, code: str, dot: Terms) -> Terms:
        """Return what the current value is in a block."""
        names, sign, after = code.removeprefix(keyword).rpartition(":=")
        expression = read_expression(after)
        if keyword == "block":
            self.write(self.evaluate(_name_call(expression), dot))
            return ()
        terms = self.evaluate(expression, dot, is_whole=False)
        bound = [name.strip() for name in names.split(",")] if sign else []
        if keyword == "range":
            if len(bound) > 1:
                self.variables[bound[0]] = tuple(each.follow(ANY_KEY) for each in terms if isinstance(each, Read))
            terms = tuple(each.follow(ANY_ITEM) for each in terms if isinstance(each, Read))
        for name in bound[-1:]:
            self.variables[name] = terms
        return dot if keyword == "if" else terms

    def write(self, terms: Terms) -> None:
        """Note that the line of the action writes values."""
        self.note((self.path, self.line), (each for each in terms if isinstance(each, Read) and each.path))

    def note(self, place: Place, reads: Iterable[Read]) -> None:
        lines = self.by_line.setdefault((self.path, self.line), {})
        lines.setdefault(place, set()).update(reads)

    def collect(self) -> Records:
        """Return what the lines read, whatever includes them."""
        found: dict[Place, set[Read]] = {}
        for lines in self.by_line.values():
            for place, reads in lines.items():
                found.setdefault(place, set()).update(reads)
        return {place: frozenset(reads) for place, reads in found.items()}

    def evaluate(self, expression: Expression, dot: Terms, *, is_whole: bool = True) -> Terms:
        """Return what an expression may stand for; a part of it may be used only, if `is_whole` is not set."""
        if isinstance(expression, Text):
            return ()
        if isinstance(expression, Lookup):
            terms = self.variables.get(expression.start, ()) if expression.start else dot
            found = self.select(terms, expression.steps)
            # In a loop or a named template, this is known from where its values come.
            is_values = not found and expression.steps[:1] == ("Values",)
            found = self.select((_Context(self.chart),), expression.steps) if is_values else found
            (self.reads.whole if is_whole else self.reads.parts).update(each for each in found if type(each) is Read)
            return found
        terms = self.call(expression, dot)
        if not expression.steps:
            return terms
        found = self.select(terms, expression.steps)
        self.reads.whole.update(each for each in found if type(each) is Read)
        return found

    def select(self, terms: Terms, steps: tuple[str, ...]) -> Terms:
        for step in steps:
            terms = tuple(found for each in terms for found in self.select_field(each, step))
        return terms

    def select_field(self, term: _Term, step: str) -> Terms:
        if isinstance(term, Read):
            # No value has such a field: what a loop forgot is meant.
            return (term.follow(step),) if step != "Values" else ()
        if isinstance(term, _Fields):
            return next((terms for name, terms in term.fields if name == step), ())
        return (Read(term.chart),) if step == "Values" else ()

    def call(self, call: Call, dot: Terms) -> Terms:
        """Return what a function may return: most of them write their arguments in another way."""
        name, arguments = call.name, call.arguments
        if name in ("include", "template", "tpl"):
            return self.include(name, arguments, dot)
        if name == "dict":
            pairs = zip(arguments[::2], arguments[1::2], strict=False)
            named = [(key.text, value) for key, value in pairs if isinstance(key, Text)]
            return (_Fields(tuple((name, self.evaluate(value, dot, is_whole=False)) for name, value in named)),)
        terms = tuple(dict.fromkeys(term for each in arguments for term in self.evaluate(each, dot)))[:_MAX_TERMS]
        if name in ("index", "get") and arguments:
            terms = self.evaluate(arguments[0], dot, is_whole=False)
            for step in arguments[1:]:
                terms = self.select(terms, (step.text if isinstance(step, Text) else ANY_ITEM,))
            self.reads.whole.update(each for each in terms if type(each) is Read)
        elif name == "dig" and arguments:
            steps = tuple(each.text if isinstance(each, Text) else ANY_ITEM for each in arguments[:-2])
            terms = tuple(
                each._replace(has_default=True) if isinstance(each, Read) else each
                for each in self.select(self.evaluate(arguments[-1], dot), steps)
            )
        elif name in _TESTS:
            terms = ()
        elif name in _WRAPPED:
            terms = tuple(each._replace(has_default=True) if isinstance(each, Read) else each for each in terms)
        elif name in ("first", "last", "values", "keys"):
            part = ANY_KEY if name == "keys" else ANY_ITEM
            terms = tuple(each.follow(part) for each in terms if isinstance(each, Read))
        return terms

    def include(self, name: str, arguments: tuple[Expression, ...], dot: Terms) -> Terms:
        """Return what a named template may write; `tpl` writes its first argument."""
        if name == "tpl" or not arguments:
            return self.evaluate(arguments[0], dot) if arguments else ()
        named = arguments[0]
        is_known = isinstance(named, Text) and self.reads.is_defined(named.text)
        passed = self.evaluate(arguments[1], dot, is_whole=not is_known) if len(arguments) > 1 else ()
        self.reads.is_exact = self.reads.is_exact and is_known
        records = self.reads.include(named.text, passed, self.chart, self.depth) if isinstance(named, Text) else {}
        found: dict[Read, None] = {}
        for place, reads in records.items():
            self.note(place, reads)
            found |= dict.fromkeys(each._replace(is_direct=False) for each in reads)
        own = (each for each in passed if isinstance(each, Read))
        return (*own, *found)


_OPENING = ("if", "range", "with", "define", "block")


def _name_call(expression: Expression) -> Call:
    """Return the call of the named template that a block is."""
    return Call("include", expression.arguments if isinstance(expression, Call) else (expression,))
