/* The heat map of findings: rules by teams or environments, with what is new and fixed since a revision. */

const MAX_COLUMNS = 14;

/* What the columns can be; the name is that of the filter. The first one that has two values is chosen. */
const COLUMNS = [
  { name: "team", label: "team", of: (finding) => [finding.team || UNSET] },
  { name: "env", label: "environment", of: (finding) => (finding.envs.length ? finding.envs : [UNSET]) },
];

/* Without a choice there are only sums. */
const NO_COLUMNS = { name: "", label: "", of: () => [] };

function chooseFindingColumns({ findings, environments }) {
  const found = COLUMNS.find(({ of }) => new Set(findings.flatMap(of)).size > 1) || NO_COLUMNS;
  return found.name === "env" ? { ...found, order: environments } : found;
}

/* Count entries by rule and column: `{now, added, fixed}` of each pair, rule and column, and of all. */
class FindingCounts {
  constructor(findings, trend, columns) {
    this.columns = columns;
    this.cells = new Map();
    this.severities = new Map();
    this.add(findings, "now");
    if (trend) {
      this.add(trend.added, "added");
      this.add(trend.fixed, "fixed");
    }
  }

  add(findings, field) {
    for (const finding of findings) {
      if (!this.severities.has(finding.rule)) this.severities.set(finding.rule, finding.severity);
      for (const rule of [finding.rule, ""]) {
        for (const column of [...this.columns.of(finding), ""]) this.open(rule, column).add(field, entryOf(finding));
      }
    }
  }

  open(rule, column) {
    const key = `${rule}\n${column}`;
    if (!this.cells.has(key)) this.cells.set(key, new EntryCounts(rule, column));
    return this.cells.get(key);
  }

  /* The counts of a rule and a column; "" is all of them. */
  get(rule, column) {
    return this.cells.get(`${rule}\n${column}`) || new EntryCounts(rule, column);
  }

  /* All rules or all columns, most findings first; environments in their own order. */
  list(field) {
    const other = field === "rule" ? "column" : "rule";
    const sums = [...this.cells.values()].filter((cell) => cell[field] && !cell[other]);
    const { order } = this.columns;
    if (order && field === "column") return [...order, UNSET].filter((name) => sums.some((cell) => cell.column === name));
    return sums
      .sort((one, two) => two.now - one.now || (one[field] < two[field] ? -1 : 1))
      .map((cell) => cell[field]);
  }

  /* The largest cell of each severity. */
  findMost() {
    const most = {};
    for (const cell of this.cells.values()) {
      if (!cell.rule || !cell.column) continue;
      const severity = this.severities.get(cell.rule);
      most[severity] = Math.max(most[severity] || 0, cell.now);
    }
    return most;
  }
}

/* The entries of a rule in a column: each is one, whatever the number of its environments and jobs is. */
class EntryCounts {
  constructor(rule, column) {
    Object.assign(this, { rule, column, entries: { now: new Set(), added: new Set(), fixed: new Set() } });
  }

  add(field, entry) {
    this.entries[field].add(entry);
  }

  get now() {
    return this.entries.now.size;
  }

  get added() {
    return this.entries.added.size;
  }

  get fixed() {
    return this.entries.fixed.size;
  }
}

/* Make the table; `query` has the rule and the column that are chosen. */
function makeHeatMap(model, counts, query) {
  const { columns } = counts;
  const names = counts.list("column");
  const shown = names.length > MAX_COLUMNS ? names.slice(0, MAX_COLUMNS - 1) : names;
  const rest = names.slice(shown.length);
  const rules = counts.list("rule");
  const most = counts.findMost();
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Rule"),
    shown.map((name) =>
      make("th", { scope: "col", class: "heat-team" }, makeHeatLink(toTarget(columns, query, "", name), query, name)),
    ),
    rest.length ? make("th", { scope: "col", class: "heat-team" }, `${rest.length} others`) : null,
    make("th", { scope: "col", class: "heat-sum" }, "Sum"),
  );
  const rows = rules.map((rule) =>
    make(
      "tr",
      {},
      makeRuleHead(model, rule, counts, query),
      shown.map((name) => makeHeat(counts, counts.get(rule, name), most, query)),
      rest.length ? makeSum(addCounts(rest.map((name) => counts.get(rule, name))), "heat-rest") : null,
      makeSum(counts.get(rule, ""), "heat-sum"),
    ),
  );
  const sums = make(
    "tr",
    {},
    make("th", { scope: "row" }, "Sum"),
    shown.map((name) => makeSum(counts.get("", name), "heat-team-sum")),
    rest.length ? makeSum(addCounts(rest.map((name) => counts.get("", name))), "heat-team-sum") : null,
    makeSum(counts.get("", ""), "heat-all"),
  );
  const parts = [make("thead", {}, head), make("tbody", {}, rows), make("tfoot", {}, sums)];
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Findings by rule${columns.label ? ` and ${columns.label}` : ""}` },
    make("table", { class: "heat" }, parts),
  );
}

/* The filter of a rule and a column; "" is no filter. */
function toTarget(columns, query, rule, name) {
  return { ...query, rule, team: "", env: "", ...(name ? { [columns.name]: name } : {}) };
}

function makeRuleHead(model, rule, counts, query) {
  const severity = counts.severities.get(rule);
  const shape = { error: "cross", warning: "alert" }[severity] || "info";
  return make(
    "th",
    { scope: "row", title: model.rules.get(rule)?.summary },
    make(
      "span",
      { class: "heat-rule" },
      make("span", { class: `tone-text-${toneOf(severity)}` }, makeIcon(shape, severity)),
      makeHeatLink(toTarget(counts.columns, query, rule, ""), query, rule),
      makeRuleHelp(model, rule),
    ),
  );
}

/* A link that filters the findings; the one that is on leads back to all of them. */
function makeHeatLink(target, query, text) {
  const isOn = ["rule", "team", "env"].every((name) => (query[name] || "") === target[name]);
  const address = formatRoute(["findings"], isOn ? { ...query, rule: "", team: "", env: "" } : target);
  return make("a", { class: "heat-link", href: address, "aria-current": isOn ? "true" : null }, text);
}

function makeHeat(counts, cell, most, query) {
  const { rule, column, now, added, fixed } = cell;
  const severity = counts.severities.get(rule);
  const trend = makeTrendText(cell);
  if (!now) {
    const text = fixed ? trend : make("span", { class: "heat-none", role: "img", "aria-label": "none" }, "·");
    return make("td", { class: "heat-cell" }, make("span", { class: "heat-empty" }, text));
  }
  const level = Math.max(1, Math.ceil(Math.sqrt(now / most[severity]) * 5));
  const words = [count(now, "finding"), added && `${added} new`, fixed && `${fixed} fixed`];
  const label = `${rule}, ${column}: ${words.filter(Boolean).join(", ")}`;
  const link = makeHeatLink(toTarget(counts.columns, query, rule, column), query, [formatNumber(now), trend]);
  link.className = `heat-${toneOf(severity)} level-${level}`;
  link.setAttribute("title", label);
  link.setAttribute("aria-label", label);
  return make("td", { class: "heat-cell" }, link);
}

function makeSum(cell, className) {
  return make(
    "td",
    { class: className },
    make("span", { class: "heat-number" }, formatNumber(cell.now)),
    makeTrendText(cell),
  );
}

function addCounts(cells) {
  const sum = new EntryCounts("", "");
  for (const { entries } of cells) {
    for (const [field, found] of Object.entries(entries)) found.forEach((entry) => sum.add(field, entry));
  }
  return sum;
}

/* "+2 −1": new and fixed; nothing if nothing changed. */
function makeTrendText({ added, fixed }) {
  if (!added && !fixed) return null;
  const parts = [
    added ? make("span", { class: "trend-new" }, `+${formatNumber(added)}`) : null,
    added && fixed ? " " : null,
    fixed ? make("span", { class: "trend-fixed" }, `−${formatNumber(fixed)}`) : null,
  ];
  return make("span", { class: "heat-trend" }, " ", parts);
}
