/* Manifests side by side: lines of the same field stand in the same row. */

const LIST_ITEM = /^(\s*)- (.*)$/;
const MAPPING_KEY = /^(\s*)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'][^:]*?|[^\s#"'].*?):(?:\s+(.*))?$/;

/* Return the key of each line: the path of the field that it writes. Items of lists are named by their `name`. */
function keyLines(texts) {
  const seen = new Map();
  const stack = [];
  return texts.map((text) => {
    const key = keyOf(text, stack);
    const number = seen.get(key) || 0;
    seen.set(key, number + 1);
    return number ? `${key} #${number}` : key;
  });
}

function keyOf(text, stack) {
  let rest = text;
  let indent = text.search(/\S/);
  if (indent < 0) return `${pathOf(stack)} blank`;
  const item = LIST_ITEM.exec(text);
  if (item) {
    while (stack.length && stack[stack.length - 1].indent > indent) stack.pop();
    while (stack.length && stack[stack.length - 1].indent === indent && stack[stack.length - 1].isItem) stack.pop();
    stack.push({ indent, name: `- ${nameOfItem(item[2])}`, isItem: true });
    rest = " ".repeat(indent + 2) + item[2];
    indent += 2;
  }
  const match = MAPPING_KEY.exec(rest);
  while (stack.length && stack[stack.length - 1].indent >= indent) stack.pop();
  if (!match) return item ? pathOf(stack) : `${pathOf(stack)} ${text.trim()}`;
  stack.push({ indent, name: match[2] });
  return pathOf(stack);
}

/* `name: x` names an item, and `--flag=x` is known by its flag; other mappings are found by their order, scalars by themselves. */
function nameOfItem(text) {
  const match = /^name: (.*)$/.exec(text) || /^"?(--?[\w.-]+)=/.exec(text);
  if (match) return match[1];
  return MAPPING_KEY.test(text) ? "" : text;
}

function pathOf(stack) {
  return stack.map((level) => level.name).join("\u0000");
}

/* Align columns of keys: return rows of indexes, -1 where a column has no such line. */
function alignColumns(columns) {
  let rows = columns[0].map((key, index) => ({ key, at: [index] }));
  for (let column = 1; column < columns.length; column++) rows = mergeColumn(rows, columns[column], column);
  return rows.map((row) => row.at);
}

function mergeColumn(rows, keys, column) {
  const places = new Map(rows.map((row, index) => [row.key, index]));
  const pairs = keys
    .map((key, index) => ({ place: places.get(key), index }))
    .filter((pair) => pair.place !== undefined);
  const kept = increasing(pairs);
  const merged = [];
  let row = 0;
  let line = 0;
  const add = (from, index) =>
    merged.push({ key: from ? from.key : keys[index], at: [...(from ? from.at : Array(column).fill(-1)), index] });
  for (const pair of [...kept, { place: rows.length, index: keys.length }]) {
    while (row < pair.place) add(rows[row++], -1);
    while (line < pair.index) add(null, line++);
    if (pair.place < rows.length) add(rows[row++], line++);
  }
  return merged;
}

/* The longest sequence of pairs in which both numbers grow. */
function increasing(pairs) {
  const ends = [];
  const before = pairs.map(() => -1);
  pairs.forEach((pair, at) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]].place < pair.place) low = middle + 1;
      else high = middle;
    }
    before[at] = low ? ends[low - 1] : -1;
    ends[low] = at;
  });
  const found = [];
  for (let at = ends.length ? ends[ends.length - 1] : -1; at >= 0; at = before[at]) found.push(pairs[at]);
  return found.reverse();
}

/* Split a line into what all texts begin with, what differs, and what all end with, at the borders of words. */
function splitChange(text, others) {
  let start = 0;
  let end = 0;
  const shortest = Math.min(text.length, ...others.map((other) => other.length));
  while (start < shortest && others.every((other) => other[start] === text[start])) start++;
  while (
    end < shortest - start &&
    others.every((other) => other[other.length - 1 - end] === text[text.length - 1 - end])
  )
    end++;
  while (start > 0 && /\w/.test(text[start - 1])) start--;
  while (end > 0 && /\w/.test(text[text.length - end])) end--;
  return [text.slice(0, start), text.slice(start, text.length - end), text.slice(text.length - end)];
}
