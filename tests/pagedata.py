"""Decode the data of a page as its script does, to compare it with what the commands print."""

import json
import re

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def decode_numbers(text):
    value = shift = 0
    for character in text:
        digit = DIGITS.index(character)
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            yield value
            value = shift = 0


def to_signed(number):
    return -(number >> 1) if number & 1 else number >> 1


def find_data(page):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]


def apply_changes(changes, base=()):
    """Apply changes to the lines of the base."""
    lines = []
    at = 0
    for skipped, copied, added in changes:
        at += skipped
        lines += (*base[at : at + copied], *added)
        at += copied
    return lines


class PageData:
    def __init__(self, text):
        document = json.loads(text)
        self.head, self.view, self.texts, self.tables = (document[key] for key in ("head", "view", "texts", "tables"))

    def table(self, name):
        """The rows of a table as mappings; references to environments and files are their names."""
        table = self.tables.get(name, {"rows": 0, "columns": {}})
        rows = [{} for _ in range(table["rows"])]
        for column, text in table["columns"].items():
            field, _, kind = column.partition(":")
            value = 0
            for row, distance in zip(rows, decode_numbers(text), strict=True):
                value += to_signed(distance)
                row[field] = self.texts[value] if kind == "text" else self.name(kind, value)
        return rows

    def name(self, kind, number):
        if kind == "environments":
            return self.table("environments")[number]["name"] if number >= 0 else ""
        if kind == "files":
            return self.table("files")[number]["path"] if number >= 0 else ""
        return number

    def lines(self, table, number):
        """The lines of a spec or manifest: each its text, and its sources (layer, file, line, value)."""
        base = self.table(table)[number].get("base", -1)
        known, origins = self.lines(table, base) if base >= 0 else [], self.table("origins")
        numbers, lines = decode_numbers(self.tables[table]["lines"][number]), []
        at = level = origin = line = 0
        for skipped in numbers:
            at += skipped
            copied, added = next(numbers), next(numbers)
            lines += known[at : at + copied]
            at += copied
            for _ in range(added):
                text, code = self.texts[next(numbers)], next(numbers)
                level += to_signed(code >> 2)
                sources = []
                if code & 3 in (1, 2):
                    line += 1 if code & 3 == 1 else to_signed(next(numbers))
                    sources.append((origin, line, ""))
                elif code & 3 == 3:
                    last = line
                    for place in range(next(numbers)):
                        found, last = next(numbers), last + to_signed(next(numbers))
                        sources.append((found, last, self.texts[next(numbers)] if place else ""))
                    origin, line = sources[0][:2]
                named = [(origins[each]["layer"], origins[each]["file"], *rest) for each, *rest in sources]
                lines.append(("  " * level + text, named))
        return lines
