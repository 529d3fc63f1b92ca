"""The built-in commands of a shell, its conditions, and programs that start the command after them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence

from jobgen.features.launch.shell.values import PERHAPS, STARTED, UNKNOWN, Exit, Field, Leave, Run, Value, is_known
from jobgen.features.launch.shell.words import Variables, append_text
from jobgen.k8s.shell import tree
from jobgen.k8s.shell.tree import Literal
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_FORMAT = lazy_pattern(r"%[sd%]|\\[nt\\]|[^%\\]+")
_MAX_SEQUENCE = 1000
OPTION_NAMES = {"errexit": "e", "nounset": "u", "allexport": "a"}
# Scripts that set nothing that a launcher reads.
_HARMLESS = lazy_pattern(
    r".*(?:/bin/activate|/conda\.sh|/setvars\.sh|/nvm\.sh|\.bashrc|\.profile|/set_?path\S*|/etc/profile)"
)


class Wrapper(NamedTuple):
    """A program that starts the command after its options."""

    values: frozenset[str] = frozenset()
    """Its options with a value of their own."""
    positions: int = 0
    """The number of words before the command."""
    word: str = ""
    """The word that it starts commands with."""


def _wrap(values: str = "", positions: int = 0, word: str = "") -> Wrapper:
    return Wrapper(frozenset(values.split()), positions, word)


WRAPPERS: Mapping[str, Wrapper] = {
    **dict.fromkeys(("nohup", "setsid", "catatonit", "unbuffer", "ddtrace-run", "opentelemetry-instrument"), _wrap()),
    **dict.fromkeys(("tini", "tini-static"), _wrap("-e -p")),
    "dumb-init": _wrap("-r --rewrite"),
    "timeout": _wrap("-s --signal -k --kill-after", 1),
    "nice": _wrap("-n --adjustment"),
    "ionice": _wrap("-c -n --class --classdata"),
    "stdbuf": _wrap("-i -o -e --input --output --error"),
    "numactl": _wrap(
        "-N -C -m -i -p -w --cpunodebind --physcpubind --membind --interleave --preferred --weighted-interleave"
    ),
    "taskset": _wrap("", 1),
    "sudo": _wrap("-u -g --user --group"),
    "gosu": _wrap("", 1),
    "su-exec": _wrap("", 1),
    "time": _wrap("-f -o"),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _wrap("-n --name -p --prefix --cwd", 0, "run")),
    "uv": _wrap("--with --extra --group --python -p --project --directory --env-file --package", 0, "run"),
    **dict.fromkeys(("poetry", "pipenv", "pixi", "rye", "pdm", "hatch"), _wrap("-e --environment -C", 0, "run")),
}


class Shell(Variables):
    """What built-in commands need of a shell."""

    def __init__(self, run: Run, variables: dict[str, Value], folder: str) -> None:
        super().__init__(run, variables)
        self.folder = folder
        self.functions: dict[str, tree.Command] = {}
        self.input: str | None = None
        self.output: list[str] | None = None
        self.saved: list[dict[str, Value | None]] = []
        """The values of local variables before the functions that are running."""

    def start(self, fields: list[Field]) -> int:
        """Run a function, a built-in command or a program."""
        raise NotImplementedError

    def run_text(self, text: str) -> int:
        """Run a script."""
        raise NotImplementedError

    def open_file(self, path: str, *, appends: bool) -> list[str]:
        """Return the output that goes to a file."""
        raise NotImplementedError

    def set_trap(self, text: str) -> None:
        """Run commands at any time from now on."""
        raise NotImplementedError

    def write(self, text: str) -> None:
        """Write to where the output is kept."""
        if self.output is not None:
            self.output.append(text)

    def find_path(self, path: str) -> str:
        """Return a path from the current folder."""
        return path if path.startswith("/") else posixpath.join(self.folder, path)

    def read_file(self, path: str) -> str | None:
        """Return the text of a file; None if it is not known."""
        full = posixpath.normpath(self.find_path(path))
        return self.run.read(full) if is_known(full) else None

    def forget(self) -> None:
        """Forget all variables: something that is not known can have set them."""
        self.variables = {name: value._replace(text=UNKNOWN) for name, value in self.variables.items()}
        self.openings = ("",)


ANYTHING = tree.Simple((), ((Literal("eval"),), (Literal(UNKNOWN),)))
"""A command that is not known."""


def to_status(decision: bool | None) -> int:
    """Return the status of a condition."""
    return PERHAPS if decision is None else int(not decision)


def _decide_file(shell: Shell, operator: str, path: str) -> bool | None:
    known = shell.read_file(path) if is_known(path) else None
    if known is None or operator not in ("-f", "-e", "-r", "-s"):
        return None
    return operator != "-s" or bool(known)


_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


class Condition:
    """The words of `[[ … ]]`, or of `test`, as a condition: True, False, or None if it is not known."""

    def __init__(self, shell: Shell, tokens: Sequence[tree.Word | str], *, is_test: bool = False) -> None:
        self.shell = shell
        self.tokens = tokens
        self.is_test = is_test
        self.at = 0

    def decide(self) -> bool | None:
        """Return the value of the whole condition."""
        if not self.tokens:
            return False
        value = self.read_or()
        return value if self.at == len(self.tokens) else None

    def take(self, *wanted: str) -> bool:
        """Skip one of several operators, if it is next."""
        if self.at < len(self.tokens) and self.operator(self.at) in wanted:
            self.at += 1
            return True
        return False

    def operator(self, at: int) -> str:
        """Return a token if it has no quotes, as operators have none."""
        token = self.tokens[at] if at < len(self.tokens) else ""
        if isinstance(token, str):
            return token
        return token[0].text if len(token) == 1 and isinstance(token[0], Literal) and not token[0].quoted else ""

    def read_or(self) -> bool | None:
        """Read conditions that `||` connects."""
        value = self.read_and()
        while self.take("-o" if self.is_test else "||"):
            other = self.read_and()
            value = True if value or other else None if None in (value, other) else False
        return value

    def read_and(self) -> bool | None:
        """Read conditions that `&&` connects."""
        value = self.read_not()
        while self.take("-a" if self.is_test else "&&"):
            other = self.read_not()
            value = False if value is False or other is False else None if None in (value, other) else True
        return value

    def read_not(self) -> bool | None:
        """Read a condition, also one in parentheses."""
        if self.operator(self.at) == "!" and self.at + 1 < len(self.tokens):
            self.at += 1
            value = self.read_not()
            return None if value is None else not value
        if self.take("(", "\\("):
            value = self.read_or()
            return value if self.take(")", "\\)") else None
        return self.read_primary()

    def text(self, at: int) -> str:
        """Return the text of a token."""
        token = self.tokens[at]
        return token if isinstance(token, str) else self.shell.join(token)

    def read_primary(self) -> bool | None:
        """Read a comparison, or a test of one word."""
        left = len(self.tokens) - self.at
        if left <= 0:
            return None
        binary = self.operator(self.at + 1)
        if left >= 3 and (binary in _COMPARE or binary in ("=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef")):
            first, second = self.at, self.at + 2
            self.at += 3
            return self.compare(self.text(first), binary, second)
        unary = self.operator(self.at)
        if left >= 2 and len(unary) == 2 and unary[0] == "-" and unary[1].isalpha():
            text = self.text(self.at + 1)
            self.at += 2
            return self.inspect(unary, text)
        text = self.text(self.at)
        self.at += 1
        return _has_text(text)

    def inspect(self, unary: str, text: str) -> bool | None:
        """Decide a test of one word."""
        if unary in ("-n", "-z"):
            has_text = _has_text(text)
            return has_text if has_text is None or unary == "-n" else not has_text
        if unary == "-v":
            value = self.shell.look_up(text)
            return None if value is not None and value.text == UNKNOWN else value is not None
        return _decide_file(self.shell, unary, text)

    def compare(self, left: str, operator: str, second: int) -> bool | None:
        """Decide a comparison of two words."""
        if operator in ("=", "==", "!="):
            token = self.tokens[second]
            if self.is_test or isinstance(token, str):
                right = self.text(second)
                equal = left == right if is_known(left) and is_known(right) else None
            else:
                equal = self.shell.match(left, token)
            return equal if equal is None or operator != "!=" else not equal
        right = self.text(second)
        if operator not in _COMPARE or not is_known(left + right):
            return None
        try:
            pair = int(left), int(right)
        except ValueError:
            values = (None, None) if self.is_test else (self.shell.calculate(left), self.shell.calculate(right))
            if values[0] is None or values[1] is None:
                return False if self.is_test else None
            pair = values  # type: ignore[assignment]
        return _COMPARE[operator](*pair)


def _has_text(text: str) -> bool | None:
    if not text:
        return False
    return True if text.strip("\ue000\ue001") else None


def _test(shell: Shell, fields: list[Field]) -> int:
    tokens = [(Literal(text),) for text, _ in fields]
    return to_status(Condition(shell, tokens, is_test=True).decide())


def _bracket(shell: Shell, fields: list[Field]) -> int:
    return _test(shell, fields[:-1]) if fields and fields[-1][0] == "]" else 2


def _succeed(_shell: Shell, _fields: list[Field]) -> int:
    return 0


def _fail(_shell: Shell, _fields: list[Field]) -> int:
    return 1


def _find_out(shell: Shell, _fields: list[Field]) -> int:
    shell.write(UNKNOWN)
    return PERHAPS


def _exit(shell: Shell, fields: list[Field]) -> int:
    raise Exit(_read_status(shell, fields))


def _return(shell: Shell, fields: list[Field]) -> int:
    raise Leave("return", _read_status(shell, fields))


def _read_status(shell: Shell, fields: list[Field]) -> int:
    text = fields[0][0] if fields else ""
    return shell.status if not text else int(text) % 256 if text.isdecimal() and len(text) < 9 else STARTED


def _leave(word: str) -> Callable[[Shell, list[Field]], int]:
    def run(_shell: Shell, fields: list[Field]) -> int:
        text = fields[0][0] if fields else "1"
        raise Leave(word, 0, int(text) if text.isdecimal() and len(text) < 4 else 1)

    return run


def _exec(shell: Shell, fields: list[Field]) -> int:
    while fields and fields[0][0].startswith("-"):
        fields = fields[2:] if fields[0][0] == "-a" else fields[1:]
    if not fields:
        return 0
    functions, shell.functions = shell.functions, {}
    status = shell.start(fields)
    shell.functions = functions
    raise Exit(status)


def _command(shell: Shell, fields: list[Field]) -> int:
    if fields and fields[0][0] in ("-v", "-V"):
        return _find_out(shell, fields)
    functions, shell.functions = shell.functions, {}
    try:
        return shell.start(fields[1:] if fields and fields[0][0] == "-p" else fields)
    finally:
        shell.functions = functions


def _eval(shell: Shell, fields: list[Field]) -> int:
    text = " ".join(text for text, _ in fields)
    if not is_known(text):
        shell.forget()
        return STARTED
    return shell.run_text(text)


def _source(shell: Shell, fields: list[Field]) -> int:
    path = fields[0][0] if fields else ""
    text = shell.read_file(path) if is_known(path) else None
    if text is not None:
        outer = shell.parameters
        if fields[1:]:
            shell.parameters = fields[1:]
        try:
            return shell.run_text(text)
        except Leave as leave:
            if leave.word != "return":
                raise
            return leave.status
        finally:
            shell.parameters = outer
    if not _HARMLESS.fullmatch(path.lstrip(UNKNOWN)):
        shell.forget()
    return STARTED


def _export(shell: Shell, fields: list[Field]) -> int:
    return _declare(shell, [("-x", None), *fields])


def _readonly(shell: Shell, fields: list[Field]) -> int:
    return _declare(shell, [("-r", None), *fields])


def _declare(shell: Shell, fields: list[Field], *, is_local: bool = False) -> int:
    flags = {sign for text, _ in fields if text.startswith("-") for sign in text[1:]}
    if flags & {"f", "F", "p"}:
        shell.options = shell.options | ({"functions"} if {"f", "x"} <= flags else set())
        shell.write(UNKNOWN)
        return 0
    is_removed = any(text.startswith("+") for text, _ in fields)
    for text, node in fields:
        if text.startswith(("-", "+")):
            continue
        name, equals, value = text.partition("=")
        appends, name = name.endswith("+"), name.removesuffix("+")
        if not name.isidentifier():
            if not is_known(text):
                shell.forget()
            continue
        old = shell.variables.get(name)
        if (is_local or not flags & {"x", "g"}) and shell.saved and "x" not in flags:
            shell.saved[-1].setdefault(name, old)
        exported = "n" not in flags and ("x" in flags or (old is not None and old.exported))
        if old is not None or flags & {"i", "A", "a"}:
            old = (old or Value((), node))._replace(exported=exported)
            shell.variables[name] = old._replace(kind="i") if "i" in flags and not old.kind else old
        if equals:
            new = append_text(shell.variables[name], value) if appends and name in shell.variables else value
            shell.assign(name, shell.limit(new), node, exported=exported)
        _limit_kind(shell, name, value if "n" in flags else "", flags | ({"l"} if is_removed else set()))
    return 0


def _limit_kind(shell: Shell, name: str, target: str, flags: set[str]) -> None:
    """Forget a variable whose later values are not followed, and the one that it refers to."""
    if ("n" in flags and (target or "x" not in flags)) or flags & {"l", "u", "c"}:
        shell.doubt(f"{name} {target}", always=True)
    elif "r" in flags and name in shell.variables:
        shell.variables[name] = shell.variables[name]._replace(kind="?")


def _local(shell: Shell, fields: list[Field]) -> int:
    return _declare(shell, fields, is_local=True)


def _unset(shell: Shell, fields: list[Field]) -> int:
    for text, _ in fields:
        if text.isidentifier():
            old = shell.variables.pop(text, None)
            if old is not None and old.kind == "?":
                shell.variables[text] = old._replace(text=UNKNOWN)
            if any(flag == "-f" for flag, _ in fields):
                shell.functions.pop(text, None)
        elif "[" in text:
            shell.variables[text.partition("[")[0]] = Value(UNKNOWN)
    return 0


def _set(shell: Shell, fields: list[Field]) -> int:
    at = 0
    while at < len(fields) and fields[at][0][:1] in ("-", "+") and fields[at][0] not in ("-", "--"):
        text = fields[at][0]
        names = set(text[1:])
        at += 1
        if "o" in names and at < len(fields):
            names |= {OPTION_NAMES.get(fields[at][0], "o")}
            at += 1
        shell.options = shell.options | names if text[0] == "-" else shell.options - names
    if at < len(fields):
        shell.parameters = fields[at + 1 :] if fields[at][0] in ("-", "--") else fields[at:]
    return 0


def _shift(shell: Shell, fields: list[Field]) -> int:
    text = fields[0][0] if fields else "1"
    if not text.isdecimal() or len(text) > 6 or not all(is_known(each) for each, _ in shell.parameters[: int(text)]):
        shell.parameters = [("\ue001", None)]
        return 0
    count = int(text)
    if count > len(shell.parameters):
        return 1
    shell.parameters = shell.parameters[count:]
    return 0


def _read(shell: Shell, fields: list[Field]) -> int:
    for text, _ in fields:
        if text.isidentifier():
            shell.assign(text, UNKNOWN, None)
    return PERHAPS


def _getopts(shell: Shell, fields: list[Field]) -> int:
    return _read(shell, fields[1:2])


def _trap(shell: Shell, fields: list[Field]) -> int:
    texts = [text for text, _ in fields if text not in ("-p", "-l", "--")]
    if len(texts) > 1 and texts[0] not in ("", "-") and not {"EXIT", "0"}.issuperset(texts[1:]):
        shell.set_trap(texts[0])
    return 0


def _alias(shell: Shell, fields: list[Field]) -> int:
    names = (text.partition("=")[0] for text, _ in fields if "=" in text)
    shell.functions = {**shell.functions, **dict.fromkeys(names, ANYTHING)}
    return 0


def _shopt(shell: Shell, fields: list[Field]) -> int:
    if any(text == "-s" for text, _ in fields):
        shell.options = shell.options | {text for text, _ in fields if text == "lastpipe"}
    return 0


def _let(shell: Shell, fields: list[Field]) -> int:
    value: int | None = 0
    for text, _ in fields:
        value = shell.calculate(text)
    return PERHAPS if value is None else int(value == 0)


def _cd(shell: Shell, fields: list[Field]) -> int:
    path = next((text for text, _ in fields if not text.startswith("-")), UNKNOWN)
    shell.folder = shell.find_path(path)
    return STARTED


def _echo(shell: Shell, fields: list[Field]) -> int:
    texts = [text for text, _ in fields]
    ends, escapes = "\n", False
    while texts and texts[0] in ("-n", "-e", "-E", "-ne", "-en"):
        ends = "" if "n" in texts[0] else ends
        escapes = escapes or "e" in texts[0]
        texts.pop(0)
    text = " ".join(texts)
    shell.write(UNKNOWN if escapes and "\\" in text else text + ends)
    return 0


def _printf(shell: Shell, fields: list[Field]) -> int:
    name = ""
    if len(fields) > 1 and fields[0][0] == "-v":
        name, fields = fields[1][0], fields[2:]
    texts = [text for text, _ in fields]
    shown = _format(texts[0], texts[1:]) if texts else ""
    if name:
        shell.assign(name, shown, None)
    else:
        shell.write(shown)
    return 0


def _format(form: str, values: list[str]) -> str:
    pieces = _FORMAT.findall(form)
    if "".join(pieces) != form or "\\" in form.replace("\\n", "").replace("\\t", ""):
        return UNKNOWN
    found: list[str] = []
    while True:
        used = 0
        for piece in pieces:
            if piece in ("%s", "%d"):
                found.append(values[used] if used < len(values) else "" if piece == "%s" else "0")
                used += 1
            else:
                found.append({"%%": "%", "\\n": "\n", "\\t": "\t"}.get(piece, piece))
        values = values[used:]
        if not values or not used:
            return "".join(found)


def _cat(shell: Shell, fields: list[Field]) -> int:
    paths = [text for text, _ in fields if text == "-" or not text.startswith("-")]
    for path in paths or ["-"]:
        text = shell.input if path == "-" else shell.read_file(path)
        shell.write(UNKNOWN if text is None else text)
    return STARTED


def _tee(shell: Shell, fields: list[Field]) -> int:
    text = UNKNOWN if shell.input is None else shell.input
    for path, _ in fields:
        if not path.startswith("-"):
            shell.open_file(path, appends=any(flag == "-a" for flag, _ in fields)).append(text)
    shell.write(text)
    return STARTED


def _seq(shell: Shell, fields: list[Field]) -> int:
    texts = [text for text, _ in fields]
    if not 1 <= len(texts) <= 3 or not all(text.lstrip("-").isdecimal() and len(text) < 9 for text in texts):
        shell.write(UNKNOWN)
        return STARTED
    numbers = [int(text) for text in texts]
    first, step, last = (
        (1, 1, *numbers) if len(numbers) == 1 else (numbers[0], 1, numbers[1]) if len(numbers) == 2 else numbers
    )
    counted = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
    too_many = len(counted) > _MAX_SEQUENCE
    shell.write(UNKNOWN if too_many else "".join(f"{number}\n" for number in counted))
    return STARTED


def _expr(shell: Shell, fields: list[Field]) -> int:
    value = shell.calculate(" ".join(text for text, _ in fields))
    shell.write(UNKNOWN if value is None else f"{value}\n")
    return STARTED


BUILTINS: Mapping[str, Callable[[Shell, list[Field]], int]] = {
    **dict.fromkeys(": true wait kill umask ulimit unalias hash jobs disown bg fg history bind".split(), _succeed),
    "false": _fail,
    **dict.fromkeys("type which pwd".split(), _find_out),
    "[": _bracket,
    "test": _test,
    "exit": _exit,
    "return": _return,
    "break": _leave("break"),
    "continue": _leave("continue"),
    "exec": _exec,
    "command": _command,
    "builtin": _command,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "export": _export,
    "declare": _declare,
    "typeset": _declare,
    "readonly": _readonly,
    "getopts": _getopts,
    "trap": _trap,
    "alias": _alias,
    "shopt": _shopt,
    "local": _local,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    "let": _let,
    **dict.fromkeys(("cd", "pushd", "popd"), _cd),
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": _tee,
    "seq": _seq,
    "expr": _expr,
}
"""What the commands do that are interpreted; programs with the same names in other folders are not."""
