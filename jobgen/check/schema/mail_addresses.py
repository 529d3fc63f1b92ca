"""Mail addresses as Go's `mail.ParseAddress` reads them: `user@host`, or `Name <user@host>`."""

from __future__ import annotations

from ipaddress import ip_address

_SPECIALS = frozenset('()<>[]:;@\\,"')


class _InvalidError(Exception):
    """The text is not an address."""


def is_mail_address(text: str) -> bool:
    """Return whether a text is one address; comments and a display name are allowed."""
    parser = _Parser(text)
    try:
        count = parser.parse_address(allow_group=True)
        parser.skip_comments()
    except _InvalidError:
        return False
    return count == 1 and not parser.rest


class _Parser:
    """Reads a text from its start; `rest` is what is left of it."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def parse_address(self, *, allow_group: bool) -> int:
        """Read an address or a group; return the number of addresses."""
        self._skip_space()
        start = self.rest
        try:
            self._read_address_only()
        except _InvalidError:
            self.rest = start
        else:
            self._skip_space()
            if self.rest.startswith("("):
                self.skip_comments()
            return 1
        if not self.rest.startswith("<"):
            self._read_display_name()
        self._skip_space()
        if allow_group and self._take(":"):
            return self._read_group()
        self._require("<")
        self._read_address_only()
        self._require(">")
        return 1

    def skip_comments(self) -> None:
        """Skip spaces and comments in parentheses, which may be nested."""
        self._skip_space()
        while self._take("("):
            depth = 1
            while depth and self.rest:
                if self.rest[0] == "\\" and len(self.rest) > 1:
                    self.rest = self.rest[1:]
                else:
                    depth += {"(": 1, ")": -1}.get(self.rest[0], 0)
                self.rest = self.rest[1:]
            if depth:
                raise _InvalidError
            self._skip_space()

    def _read_group(self) -> int:
        count = 0
        self._skip_space()
        while not self._take(";"):
            if count:
                self._require(",")
            self._skip_space()
            count += self.parse_address(allow_group=False)
            self.skip_comments()
        self.skip_comments()
        return count

    def _read_address_only(self) -> None:
        """Read `local@domain`."""
        self._skip_space()
        if self.rest.startswith('"'):
            if not self._read_quoted():
                raise _InvalidError
        else:
            self._read_dotted()
        self._require("@")
        self._skip_space()
        if self._take("["):
            self._read_literal()
        else:
            self._read_dotted()

    def _read_display_name(self) -> None:
        words = 0
        while True:
            if words:
                self.skip_comments()
            self._skip_space()
            try:
                if self.rest.startswith('"'):
                    self._read_quoted()
                else:
                    self._read_word(_SPECIALS)
            except _InvalidError:
                break
            words += 1
        if not words:
            raise _InvalidError

    def _read_quoted(self) -> str:
        found = ""
        is_escaped = False
        for index, char in enumerate(self.rest[1:], 1):
            if not (_is_visible(char) or char in " \t"):
                break
            if not is_escaped and char == '"':
                self.rest = self.rest[index + 1 :]
                return found
            is_escaped = not is_escaped and char == "\\"
            found += "" if is_escaped else char
        raise _InvalidError

    def _read_word(self, specials: frozenset[str]) -> str:
        end = next(
            (at for at, char in enumerate(self.rest) if char in specials or not _is_visible(char)), len(self.rest)
        )
        if not end:
            raise _InvalidError
        found, self.rest = self.rest[:end], self.rest[end:]
        return found

    def _read_dotted(self) -> None:
        """Read words with single dots between them."""
        found = self._read_word(_SPECIALS)
        if not all(found.split(".")):
            raise _InvalidError

    def _read_literal(self) -> None:
        """Read the rest of an IP address in brackets; one of version 6 has a prefix."""
        address, bracket, self.rest = self.rest.partition("]")
        try:
            found = ip_address(address.removeprefix("IPv6:"))
        except ValueError:
            raise _InvalidError from None
        if not bracket or "%" in address or (found.version == 6 and not address.startswith("IPv6:")):
            raise _InvalidError

    def _skip_space(self) -> None:
        self.rest = self.rest.lstrip(" \t")

    def _take(self, char: str) -> bool:
        if not self.rest.startswith(char):
            return False
        self.rest = self.rest[1:]
        return True

    def _require(self, char: str) -> None:
        if not self._take(char):
            raise _InvalidError


def _is_visible(char: str) -> bool:
    return "!" <= char <= "~" or char >= "\x80"
