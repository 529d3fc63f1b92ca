/* The heat map of findings: rules by teams, with what is new and fixed since a revision. */

const MAX_TEAMS = 14;

/* Count findings by rule and team: `{now, added, fixed}` of each pair, rule and team, and of all. */
class FindingCounts {
  constructor(findings, trend) {
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
        for (const team of [finding.team || UNSET, ""]) this.open(rule, team)[field]++;
      }
    }
  }

  open(rule, team) {
    const key = `${rule}\n${team}`;
    if (!this.cells.has(key)) this.cells.set(key, { rule, team, now: 0, added: 0, fixed: 0 });
    return this.cells.get(key);
  }

  /* The counts of a rule and a team; "" is all of them. */
  get(rule, team) {
    return this.cells.get(`${rule}\n${team}`) || { rule, team, now: 0, added: 0, fixed: 0 };
  }

  /* All rules or all teams, most findings first. */
  list(field) {
    const other = field === "rule" ? "team" : "rule";
    const sums = [...this.cells.values()].filter((cell) => cell[field] && !cell[other]);
    return sums
      .sort((one, two) => two.now - one.now || (one[field] < two[field] ? -1 : 1))
      .map((cell) => cell[field]);
  }

  /* The largest cell of each severity. */
  findMost() {
    const most = {};
    for (const cell of this.cells.values()) {
      if (!cell.rule || !cell.team) continue;
      const severity = this.severities.get(cell.rule);
      most[severity] = Math.max(most[severity] || 0, cell.now);
    }
    return most;
  }
}

/* Make the table; `query` has the rule and the team that are chosen. */
function makeHeatMap(model, counts, query) {
  const teams = counts.list("team");
  const shown = teams.length > MAX_TEAMS ? teams.slice(0, MAX_TEAMS - 1) : teams;
  const rest = teams.slice(shown.length);
  const rules = counts.list("rule");
  const most = counts.findMost();
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Rule"),
    shown.map((team) =>
      make("th", { scope: "col", class: "heat-team" }, makeHeatLink({ ...query, rule: "", team }, query, team)),
    ),
    rest.length ? make("th", { scope: "col", class: "heat-team" }, `${rest.length} others`) : null,
    make("th", { scope: "col", class: "heat-sum" }, "Sum"),
  );
  const rows = rules.map((rule) =>
    make(
      "tr",
      {},
      makeRuleHead(model, rule, counts.severities.get(rule), query),
      shown.map((team) => makeHeat(counts, counts.get(rule, team), most, query)),
      rest.length ? makeSum(addCounts(rest.map((team) => counts.get(rule, team))), "heat-rest") : null,
      makeSum(counts.get(rule, ""), "heat-sum"),
    ),
  );
  const sums = make(
    "tr",
    {},
    make("th", { scope: "row" }, "Sum"),
    shown.map((team) => makeSum(counts.get("", team), "heat-team-sum")),
    rest.length ? makeSum(addCounts(rest.map((team) => counts.get("", team))), "heat-team-sum") : null,
    makeSum(counts.get("", ""), "heat-all"),
  );
  const parts = [make("thead", {}, head), make("tbody", {}, rows), make("tfoot", {}, sums)];
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Findings by rule and team" },
    make("table", { class: "heat" }, parts),
  );
}

function makeRuleHead(model, rule, severity, query) {
  const shape = { error: "cross", warning: "alert" }[severity] || "info";
  return make(
    "th",
    { scope: "row", title: model.rules.get(rule) },
    make(
      "span",
      { class: "heat-rule" },
      make("span", { class: `tone-text-${toneOf(severity)}` }, makeIcon(shape, severity)),
      makeHeatLink({ ...query, rule, team: "" }, query, rule),
    ),
  );
}

/* A link that filters the findings; the one that is on leads back to all of them. */
function makeHeatLink(target, query, text) {
  const isOn = (query.rule || "") === target.rule && (query.team || "") === target.team;
  const address = formatRoute(["findings"], isOn ? { ...query, rule: "", team: "" } : target);
  return make("a", { class: "heat-link", href: address, "aria-current": isOn ? "true" : null }, text);
}

function makeHeat(counts, cell, most, query) {
  const { rule, team, now, added, fixed } = cell;
  const severity = counts.severities.get(rule);
  const trend = makeTrendText(cell);
  if (!now) {
    const text = fixed ? trend : make("span", { class: "heat-none", role: "img", "aria-label": "none" }, "·");
    return make("td", { class: "heat-cell" }, make("span", { class: "heat-empty" }, text));
  }
  const level = Math.max(1, Math.ceil(Math.sqrt(now / most[severity]) * 5));
  const words = [count(now, "finding"), added && `${added} new`, fixed && `${fixed} fixed`];
  const label = `${rule}, ${team}: ${words.filter(Boolean).join(", ")}`;
  const link = makeHeatLink({ ...query, rule, team }, query, [formatNumber(now), trend]);
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
  const add = (field) => cells.reduce((total, cell) => total + cell[field], 0);
  return { now: add("now"), added: add("added"), fixed: add("fixed") };
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
