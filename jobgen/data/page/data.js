"use strict";

// Decodes the data of the page; docs/report_data.md describes it.

const DIGITS = new Map([..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].map(
  (character, value) => [character, value],
));

// The integers of a text in base 64; none of them is negative.
function decodeNumbers(text) {
  const numbers = [];
  let value = 0, scale = 1;
  for (const character of text) {
    const digit = DIGITS.get(character);
    value += (digit & 31) * scale;
    if (digit & 32) {
      scale *= 32;
    } else {
      numbers.push(value);
      value = 0;
      scale = 1;
    }
  }
  return numbers;
}

// A run of digits that is longer than a number of JavaScript can hold exactly.
const LONG_NUMBER = /[g-z0-9+/]{10}/;

// The integers of a column, of which each is written as its distance to the one before it. A long one is decoded exactly,
// because those after it are relative to it.
function decodeColumn(text) {
  if (LONG_NUMBER.test(text)) return decodeLongColumn(text);
  let value = 0;
  return decodeNumbers(text).map((distance) => (value += toSigned(distance)));
}

function decodeLongColumn(text) {
  const values = [];
  let value = 0n, distance = 0n, shift = 0n;
  for (const character of text) {
    const digit = DIGITS.get(character);
    distance |= BigInt(digit & 31) << shift;
    shift += 5n;
    if (digit & 32) continue;
    value += distance & 1n ? -(distance >> 1n) : distance >> 1n;
    values.push(Number(value));
    distance = shift = 0n;
  }
  return values;
}

// The integer whose sign is the lowest bit of another one.
function toSigned(number) {
  return number % 2 ? -(number - 1) / 2 : number / 2;
}

class PageData {
  constructor(document) {
    this.view = document.view;
    this.head = document.head;
    this.texts = document.texts;
    this._tables = document.tables;
    this._rows = new Map();
    this._manifests = new Map();
  }

  // The rows of a table as objects; a reference is the number of a row, or -1.
  table(name) {
    if (!this._rows.has(name)) {
      const { rows: count, columns } = this._tables[name] || { rows: 0, columns: {} };
      const rows = Array.from({ length: count }, () => ({}));
      for (const [column, encoded] of Object.entries(columns)) {
        const [field, type] = column.split(":");
        decodeColumn(encoded).forEach((value, at) => {
          rows[at][field] = type === "text" ? this.texts[value] : value;
        });
      }
      this._rows.set(name, rows);
    }
    return this._rows.get(name);
  }

  // The lines of a spec, as texts.
  specLines(number) {
    return this._decodeLines(this._tables.specs.lines[number], []).map((line) => line.text);
  }

  // The lines of a manifest: {text, sources: [{origin, line, value}]}; the first source wins.
  manifestLines(number) {
    if (!this._manifests.has(number)) {
      const { base } = this.table("manifests")[number];
      const known = base < 0 ? [] : this.manifestLines(base);
      this._manifests.set(number, this._decodeLines(this._tables.manifests.lines[number], known));
    }
    return this._manifests.get(number);
  }

  _decodeLines(encoded, base) {
    const numbers = decodeNumbers(encoded), lines = [];
    let next = 0, at = 0, level = 0, origin = 0, line = 0;
    while (next < numbers.length) {
      at += numbers[next++];
      const copied = numbers[next++], added = numbers[next++];
      for (let count = 0; count < copied; count++) lines.push(base[at++]);
      for (let count = 0; count < added; count++) {
        const text = this.texts[numbers[next++]], code = numbers[next++], sources = [];
        level += toSigned(Math.floor(code / 4));
        if (code % 4 === 1) {
          sources.push({ origin, line: ++line, value: "" });
        } else if (code % 4 === 2) {
          line += toSigned(numbers[next++]);
          sources.push({ origin, line, value: "" });
        } else if (code % 4 === 3) {
          for (let left = numbers[next++], last = line; left > 0; left--) {
            const found = { origin: numbers[next++], line: (last += toSigned(numbers[next++])), value: "" };
            if (sources.length) found.value = this.texts[numbers[next++]];
            sources.push(found);
          }
          ({ origin, line } = sources[0]);
        }
        lines.push({ text: "  ".repeat(level) + text, sources });
      }
    }
    return lines;
  }
}
