"""Expand the words of a shell: parameters, substitutions, arithmetic and patterns, with values that are not known."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.launch.shell.arithmetic import evaluate
from jobgen.features.launch.shell.patterns import MAX_PATTERN, Pattern, parse_pattern
from jobgen.features.launch.shell.values import (
    MAX_BYTES,
    MAX_TEXT,
    SPLIT,
    STARTED,
    UNKNOWN,
    Exit,
    Field,
    Run,
    Value,
    is_known,
)
from jobgen.k8s.shell import tree
from jobgen.k8s.shell.syntax import UnsupportedSyntax
from jobgen.k8s.shell.tree import Assignment, Literal, Parameter
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import Place

_GLOB = lazy_pattern(r"[*?]|\[[^\]]+\]")
_BRACES = lazy_pattern(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
# Variables that the image, the kubelet or the shell sets.
_SET_ELSEWHERE = frozenset(
    """PATH HOME HOSTNAME PWD OLDPWD USER LOGNAME SHELL TERM LANG LC_ALL PYTHONPATH LD_LIBRARY_PATH LIBRARY_PATH
    LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_VERSION NVIDIA_VISIBLE_DEVICES VIRTUAL_ENV CONDA_PREFIX TMPDIR UID EUID GROUPS
    PPID RANDOM SRANDOM SECONDS EPOCHSECONDS LINENO BASHPID BASH BASH_SOURCE BASH_VERSION FUNCNAME PIPESTATUS HOSTTYPE
    OSTYPE MACHTYPE SHLVL IFS REPLY OPTARG OPTIND""".split()
)
_NAME = lazy_pattern(r"[A-Za-z_]\w*")
_SERVICE = lazy_pattern(r"KUBERNETES_\w+|\w+_SERVICE_(?:HOST|PORT)\w*")


class Variables:
    """The variables and parameters of a shell, and the words that they become."""

    def __init__(self, run: Run, variables: dict[str, Value]) -> None:
        self.run = run
        self.variables = variables
        self.parameters: list[Field] = []
        self.name = UNKNOWN
        """The name that the shell was started with."""
        self.openings: tuple[str, ...] = ()
        """How the names of variables start that may be set; an empty text for all."""
        """True if variables that are not set here can have values."""
        self.options: set[str] = set()
        self.status = 0

    def capture(self, body: tree.Script) -> str:
        """Return the output of commands."""
        raise NotImplementedError

    def match(self, subject: str, pattern: tree.Word) -> bool | None:
        """Return True if a text matches a pattern; None if that is not known."""
        if all(isinstance(part, Literal) and part.text == "*" and not part.quoted for part in pattern):
            return True
        expression = self.compile(pattern)
        if expression is None or not is_known(subject) or len(subject) > MAX_PATTERN:
            return None
        self.run.match(expression, subject)
        return expression.matches(subject)

    def apply(self, assignment: Assignment, *, exported: bool = False) -> int:
        """Apply an assignment, and return its status."""
        name = assignment.name
        self.run.step()
        if isinstance(assignment.value, list):
            fields = [field for word in assignment.value for field in self.expand(word)]
            items = tuple(text for text, _ in fields)
            nodes = [node for _, node in fields if node is not None]
            old = self.variables.get(name) if assignment.appends else None
            self.store(name, (*(old.items if old else ()), *items), nodes[-1] if nodes else None)
            return 0
        status = STARTED if any(isinstance(part, tree.Substitution) for part in assignment.value) else 0
        text, node = self.join_with_node(assignment.value)
        old = self.variables.get(name)
        if assignment.item is not None:
            self.doubt(assignment.item)
            at = self.calculate(assignment.item) if assignment.item.isdigit() else None
            known = list(old.items) if old else []
            if at is None or not 0 <= at <= len(known):
                self.store(name, UNKNOWN, node)
                return status
            known[at : at + 1] = [text]
            self.store(name, tuple(known), node)
            return status
        if assignment.appends and old is not None:
            if not isinstance(old.text, str):
                text = UNKNOWN
            text = self.limit(append_text(old, text))
            node = old.node if node is None else node
        self.assign(name, text, node, exported=exported)
        return status

    def assign(self, name: str, text: str, node: Place, *, exported: bool = False) -> None:
        """Set a variable, which stays exported, and what it is."""
        old = self.variables.get(name, Value(""))
        if old.kind == "i":
            number = self.calculate(text)
            text = UNKNOWN if number is None else str(number)
        elif old.kind:
            # It can be a reference to the variable of this name.
            self.doubt(text if text.isidentifier() else "", always=True)
            text = UNKNOWN
        self.variables[name] = Value(text, node, exported or old.exported or "a" in self.options, old.kind)

    def doubt(self, text: str, *, always: bool = False) -> None:
        """Forget for good the variables that an expression can set."""
        if always or "=" in text or "++" in text or "--" in text:
            for name in _NAME.findall(text):
                old = self.variables.get(name, Value(""))
                self.variables[name] = Value(UNKNOWN, None, old.exported, "?" if always else old.kind)

    def store(self, name: str, value: str | tuple[str, ...], node: Place) -> None:
        """Set a variable to one or several values."""
        if not isinstance(value, str) and sum(map(len, value)) > MAX_TEXT:
            value = UNKNOWN
        kind = self.variables[name].kind if name in self.variables else ""
        self.variables[name] = Value(UNKNOWN if kind else value, node, kind=kind)

    def look_up(self, name: str) -> Value | None:
        """Return the value of a variable or parameter; None if it is not set."""
        if name in self.variables:
            return self.variables[name]
        if name.isdigit():
            number = int(name[:6])
            if number == 0:
                return Value(self.name)
            if any(SPLIT in text for text, _ in self.parameters[:number]):
                return Value(UNKNOWN)
            if number <= len(self.parameters):
                return Value(*self.parameters[number - 1])
            return None
        if name == "#":
            is_counted = not any(SPLIT in text for text, _ in self.parameters)
            return Value(str(len(self.parameters)) if is_counted else UNKNOWN)
        if name == "?":
            # A script that reads it may start another program in place of one that failed.
            count = len(self.run.calls)
            self.run.excuse(count - 1 if self.status == STARTED and count else count, count, count)
            return Value(str(self.status) if self.status >= 0 else UNKNOWN)
        if (
            name in ("$", "!", "-")
            or name.startswith(self.openings)
            or name in _SET_ELSEWHERE
            or _SERVICE.fullmatch(name)
        ):
            return Value(UNKNOWN)
        return None

    def limit(self, text: str) -> str:
        """Return a text, or none of it if it is too long."""
        return text if len(text) <= MAX_TEXT else UNKNOWN

    def calculate(self, text: str) -> int | None:
        """Return the value of an arithmetic expression; None if it is not known."""
        if not is_known(text):
            self.doubt(text)
            return None

        unknown = False

        def read(name: str) -> str | None:
            nonlocal unknown
            value = self.look_up(name)
            text = "" if value is None or not value.items else value.items[0]
            unknown = unknown or not is_known(text)
            return text if is_known(text) else None

        def write(name: str, value: str | None) -> None:
            self.assign(name, UNKNOWN if value is None else value, None)

        found = evaluate(text, read, write)
        if found is None:
            self.doubt(text)
        if found is None and not unknown:
            # A shell ends here, or has numbers that are larger than ours.
            raise UnsupportedSyntax
        return found

    def expand(self, word: tree.Word) -> list[Field]:
        """Return the words that a word becomes."""
        return _Splitter(self, word).list_all()

    def join(self, word: tree.Word) -> str:
        """Return a word as one text."""
        return self.join_with_node(word)[0]

    def join_with_node(self, word: tree.Word) -> Field:
        """Return a word as one text, as in an assignment."""
        texts: list[str] = []
        node: Place = None
        for place, part in enumerate(word):
            if isinstance(part, Literal):
                is_home = not place and not part.quoted and part.text.startswith("~")
                texts.append(UNKNOWN + part.text[1:] if is_home else part.text)
                continue
            items, origin = self.expand_part(part)
            texts.append(" ".join(items))
            node = node if origin is None else origin
        text = self.limit("".join(texts).replace(SPLIT, UNKNOWN))
        self.run.spend(len(text))
        return text, node

    def expand_part(self, part: tree.Part) -> tuple[Sequence[str], Place]:
        """Return the texts of a part, several only for lists, and where the value was written."""
        self.run.step()
        if isinstance(part, Parameter):
            return self.expand_parameter(part)
        if isinstance(part, tree.Substitution):
            return (UNKNOWN if part.is_file else self.capture(part.body),), None
        if isinstance(part, tree.Arithmetic):
            value = self.calculate(self.join(part.expression))
            return (UNKNOWN if value is None else str(value),), None
        return (part.text,), None

    def expand_parameter(self, part: Parameter) -> tuple[Sequence[str], Place]:
        """Return the values of a parameter."""
        items, node = self.find_items(part)
        if part.prefix == "#":
            is_list = part.name in "@*" or (part.item is not None and self.join(part.item) in ("@", "*"))
            if any(SPLIT in item for item in items or ()) or (items == (UNKNOWN,) and is_list):
                return (UNKNOWN,), None
            text = "".join(items or ())
            return ((str(len(items or ())) if is_list else str(len(text)) if is_known(text) else UNKNOWN),), None
        if part.operator:
            return self.modify(part, items, node)
        if items is None:
            if "u" in self.options and part.name not in "@*":
                raise Exit(1)
            return () if part.name == "@" else ("",), None
        return items, node

    def find_items(self, part: Parameter) -> tuple[Sequence[str] | None, Place]:
        """Return the values of a parameter before its operator is applied; None if it is not set."""
        if part.name in ("@", "*"):
            texts = [text for text, _ in self.parameters]
            nodes = [node for _, node in self.parameters if node is not None]
            node = nodes[-1] if nodes else None
            return ([" ".join(texts)] if part.name == "*" and part.quoted else texts), node
        value = self.look_up(part.name)
        index = "" if part.item is None else self.join(part.item)
        self.doubt(index)
        if part.prefix == "!" and value is not None:
            name = value.items[0] if value.items else ""
            if part.item is not None or not name.isidentifier():
                return (UNKNOWN,), None
            value = self.look_up(name)
        if value is None:
            return None, None
        if index in ("@", "*"):
            items = [SPLIT] if value.text == UNKNOWN else list(value.items)
            return ([" ".join(items)] if index == "*" and part.quoted else items), value.node
        if index:
            at = self.calculate(index)
            if at is None or value.text == UNKNOWN:
                return (UNKNOWN,), None
            found = value.items[at : at + 1] if at >= 0 else value.items[at:][:1]
            return (found or None), value.node
        return (value.items[:1] or None), value.node

    def modify(self, part: Parameter, items: Sequence[str] | None, node: Place) -> tuple[Sequence[str], Place]:
        """Apply the operator of `${…}`."""
        operator = part.operator
        text = None if items is None else " ".join(items)
        if operator.lstrip(":") in ("-", "=", "?", "+"):
            is_unknown = text is not None and bool(text) and not text.strip(UNKNOWN + SPLIT)
            if is_unknown and operator.startswith(":") and operator != ":?":
                return (UNKNOWN,), node
            is_set = text is not None and (bool(text) or not operator.startswith(":"))
            if operator.endswith("+"):
                return self.expand_default(part) if is_set else (("",), None)
            if is_set:
                return items or (), node
            if operator.endswith("?"):
                raise Exit(1)
            if operator.endswith("="):
                default, origin = self.join_with_node(part.argument)
                self.assign(part.name, default, origin)
                return (default,), origin
            return self.expand_default(part)
        if text is None:
            return ("",), None
        if not is_known(text) or (items is not None and len(items) != 1) or len(text) > MAX_PATTERN:
            self.doubt(self.join(part.argument) if operator == ":" else "")
            return (UNKNOWN,), node
        changed = self.change(text, operator, part)
        return (UNKNOWN if changed is None else changed,), node

    def expand_default(self, part: Parameter) -> tuple[Sequence[str], Place]:
        """Return the word behind the operator of a parameter."""
        default, origin = self.join_with_node(part.argument)
        return (default,), origin

    def change(self, text: str, operator: str, part: Parameter) -> str | None:
        """Return the text that an operator makes of another; None if it is not known."""
        if operator[0] in "^,":
            if part.argument:
                return None
            convert = str.upper if operator[0] == "^" else str.lower
            return convert(text) if len(operator) == 2 else convert(text[:1]) + text[1:]
        if operator == ":":
            return self.cut(text, self.join(part.argument))
        if operator[0] == "/":
            return self.replace(text, operator, part.argument)
        expression = self.compile(part.argument) if operator[0] in "%#" else None
        if expression is None:
            return None
        self.run.match(expression, text)
        if operator[0] == "#":
            end = expression.find_end(text, longest=operator == "##")
            return text[end:] if end >= 0 else text
        start = expression.find_start(text, longest=operator == "%%")
        return text[:start] if start >= 0 else text

    def cut(self, text: str, argument: str) -> str | None:
        """Return a part of a text."""
        offset, colon, length = argument.partition(":")
        start, count = self.calculate(offset), self.calculate(length) if colon else len(text)
        if start is None or count is None or count < 0:
            return None
        start = max(start + len(text), 0) if start < 0 else start
        return text[start : start + count]

    def replace(self, text: str, operator: str, argument: tree.Word) -> str | None:
        """Replace what matches a pattern."""
        pattern: list[tree.Part] = []
        rest: list[tree.Part] = []
        is_found = False
        for part in argument:
            if (
                not is_found
                and isinstance(part, Literal)
                and not (part.quoted and len(part.text) == 1)
                and "/" in part.text
            ):
                before, _, after = part.text.partition("/")
                pattern.append(Literal(before, part.quoted))
                rest.append(Literal(after, part.quoted))
                is_found = True
            else:
                (rest if is_found else pattern).append(part)
        expression, new = self.compile(tuple(pattern)), self.join(tuple(rest))
        if expression is None or not is_known(new) or operator in ("/#", "/%") or not any(pattern):
            return None
        self.run.match(expression, text)
        if len(text) * len(new) > MAX_BYTES:
            return None
        return expression.replace(text, new, everywhere=operator == "//")

    def compile(self, pattern: tree.Word) -> Pattern | None:
        """Return a pattern of files; None if it is not known."""
        pieces: list[str] = []
        for part in pattern:
            text = part.text if isinstance(part, Literal) else " ".join(self.expand_part(part)[0])
            if not is_known(text):
                return None
            pieces.append("".join(f"\\{sign}" for sign in text) if part.quoted else text)
        return parse_pattern("".join(pieces))


def append_text(old: Value, text: str) -> str:
    """Return what `+=` makes of a value; it adds to an integer."""
    before = old.items[0] if old.items else ""
    return f"({before or 0})+({text or 0})" if old.kind == "i" else before + text


class _Splitter:
    """Splits a word into those that it becomes."""

    def __init__(self, shell: Variables, word: tree.Word) -> None:
        self.shell = shell
        self.word = word
        self.found: list[Field] = []
        self.texts: list[str] = []
        self.node: Place = None
        self.is_pattern = False

    def list_all(self) -> list[Field]:
        for place, part in enumerate(self.word):
            if isinstance(part, Literal):
                text = part.text
                if not part.quoted:
                    self.is_pattern = self.is_pattern or any(sign in text for sign in "*?[{")
                    text = UNKNOWN + text[1:] if not place and text.startswith("~") else text
                self.texts.append(text)
                continue
            items, node = self.shell.expand_part(part)
            self.node = self.node if node is None else node
            if part.quoted:
                self.add_quoted(items)
            else:
                self.add_split(items)
        self.flush()
        return self.found

    def add_quoted(self, items: Sequence[str]) -> None:
        for number, item in enumerate(items):
            if number:
                self.flush()
            self.texts.append(item)

    def add_split(self, items: Sequence[str]) -> None:
        for number, item in enumerate(items):
            if number:
                self.flush()
            text = item.replace(UNKNOWN, SPLIT)
            if "IFS" in self.shell.variables and text:
                text = SPLIT
            words = text.split()
            if text[:1].isspace():
                self.flush()
            for place, word in enumerate(words):
                if place:
                    self.flush()
                self.is_pattern = self.is_pattern or any(sign in word for sign in "*?[")
                self.texts.append(word)
            if text[-1:].isspace():
                self.flush()

    def flush(self) -> None:
        """End a word; one without quotes and without text is none."""
        if self.texts:
            text = self.shell.limit("".join(self.texts))
            self.shell.run.spend(len(text))
            if self.is_pattern and not text.startswith("-"):
                found = _GLOB.search(text) or _BRACES.search(text)
                text = text[: found.start()] + SPLIT if found else text
            elif self.is_pattern and (found := _BRACES.search(text)):
                text = text[: found.start()] + SPLIT
            self.found.append((text, self.node))
        self.texts, self.is_pattern = [], False
