"use strict";

// Decodes the data of the page; docs/report_data.md describes it.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function decodeNumbers(text) {
  const numbers = [];
  let value = 0, shift = 1;
  for (const character of text) {
    const digit = DIGITS.indexOf(character);
    value += (digit & 31) * shift;
    if (digit & 32) {
      shift *= 32;
    } else {
      numbers.push(value % 2 ? -(value - 1) / 2 : value / 2);
      value = 0;
      shift = 1;
    }
  }
  return numbers;
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
      const { columns, rows } = this._tables[name] || { columns: [], rows: [] };
      const fields = columns.map((column) => column.split(":"));
      this._rows.set(name, rows.map((row) => {
        const made = {};
        fields.forEach(([field, type], at) => { made[field] = type === "text" ? this.texts[row[at]] : row[at]; });
        return made;
      }));
    }
    return this._rows.get(name);
  }

  // The lines of a spec, as texts.
  specLines(number) {
    let last = 0;
    return decodeNumbers(this.table("specs")[number].lines).map((distance) => this.texts[last += distance]);
  }

  // The lines of a manifest: {text, sources: [{origin, line, column, value}]}; the first source wins.
  manifestLines(number) {
    if (!this._manifests.has(number)) {
      const { base, lines } = this.table("manifests")[number];
      this._manifests.set(number, this._decodeLines(lines, base < 0 ? [] : this.manifestLines(base)));
    }
    return this._manifests.get(number);
  }

  _decodeLines(encoded, base) {
    const numbers = decodeNumbers(encoded), lines = [];
    let next = 0, at = 0, text = 0, first = { origin: 0, line: 0, column: 0, value: "" };
    while (next < numbers.length) {
      at += numbers[next++];
      const copied = numbers[next++], added = numbers[next++];
      for (let count = 0; count < copied; count++) lines.push(base[at++]);
      for (let count = 0; count < added; count++) {
        text += numbers[next++];
        const code = numbers[next++];
        let sources = [];
        if (code === 1) sources = [{ ...first, line: first.line + 1 }];
        else if (code === 2) sources = [first];
        for (let left = code - 2, last = first; left > 0; left--) {
          last = {
            origin: last.origin + numbers[next++],
            line: last.line + numbers[next++],
            column: last.column + numbers[next++],
            value: sources.length ? this.texts[numbers[next++]] : "",
          };
          sources.push(last);
        }
        if (sources.length) first = sources[0];
        lines.push({ text: this.texts[text], sources });
      }
    }
    return lines;
  }
}
