/* Findings of the fleet: a heat map of rules and teams, and what changed since a revision. */

const MAX_TEAMS = 14;

function showFindings(model, place, route) {
  const severity = route.query.severity || "";
  const findings = model.findings
    .filter((finding) => !severity || finding.severity === severity)
    .map((finding) => ({ ...finding, team: finding.team || UNSET }));
  const choices = [["", "all"], ...SEVERITIES.map((each) => [each, `${each}s`])];
  const controls = make(
    "div",
    { class: "controls" },
    makeChoice("Severity", choices, severity, (value) => goTo(["findings"], { severity: value })),
  );
  const counts = `${count(findings.length, "finding")} of ${count(new Set(findings.map((finding) => finding.rule)).size, "rule")}`;
  const body = findings.length
    ? makeHeatMap(model, findings)
    : makeEmpty(severity ? `No ${severity}s` : "No findings", "Every job of every environment passes.");
  const trend = makeTrend(model);
  show(
    place,
    makePage(
      "Findings",
      counts,
      controls,
      trend,
      make("section", { class: "panel" }, make("h2", {}, "Rules by team"), body),
      findings.length ? makeRules(model, findings) : null,
    ),
  );
}

/* New and fixed findings since the revision of --since. */
function makeTrend(model) {
  if (!model.trend) return null;
  const { since, added, fixed } = model.trend;
  const list = (items) =>
    make(
      "ul",
      { class: "findings" },
      items.slice(0, 50).map((finding) => makeFinding(model, finding, finding.envs)),
      items.length > 50 ? make("li", { class: "hint" }, `and ${items.length - 50} more`) : null,
    );
  const fold = (title, tone, items) =>
    make(
      "details",
      { class: "trend", open: items.length > 0 && items.length <= 8 },
      make(
        "summary",
        {},
        make("span", { class: `total-value tone-text-${items.length ? tone : "note"}` }, formatNumber(items.length)),
        title,
      ),
      items.length ? list(items) : make("p", { class: "hint" }, "none"),
    );
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Since ", make("code", {}, since)),
    make("div", { class: "trends" }, fold("new", "bad", added), fold("fixed", "good", fixed)),
  );
}

function makeHeatMap(model, findings) {
  const teams = orderByCount(findings, (finding) => finding.team);
  const shown = teams.slice(0, MAX_TEAMS);
  const rules = orderByCount(findings, (finding) => finding.rule);
  const severities = new Map(findings.map((finding) => [finding.rule, finding.severity]));
  const cells = new Map();
  for (const finding of findings) {
    const key = `${finding.rule}\n${finding.team}`;
    cells.set(key, (cells.get(key) || 0) + 1);
  }
  const most = {};
  for (const [key, number] of cells) {
    const severity = severities.get(key.split("\n")[0]);
    most[severity] = Math.max(most[severity] || 0, number);
  }
  const changes = countTrend(model);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Rule"),
    shown.map(([team]) => make("th", { scope: "col", class: "heat-team" }, make("span", {}, team))),
    make("th", { scope: "col" }, "Sum"),
    model.trend ? make("th", { scope: "col" }, "Trend") : null,
  );
  const rows = rules.map(([rule, sum]) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row", title: model.rules.get(rule) },
        make(
          "span",
          { class: "heat-rule" },
          makeIcon({ error: "cross", warning: "alert" }[severities.get(rule)] || "info", severities.get(rule)),
          rule,
        ),
      ),
      shown.map(([team]) =>
        makeHeat(rule, team, cells.get(`${rule}\n${team}`) || 0, most[severities.get(rule)], severities.get(rule)),
      ),
      make("td", { class: "heat-sum" }, formatNumber(sum)),
      model.trend ? make("td", { class: "heat-trend" }, formatTrend(changes.get(rule))) : null,
    ),
  );
  const more =
    teams.length > MAX_TEAMS
      ? make("p", { class: "hint" }, `${teams.length - MAX_TEAMS} more teams are part of the sums.`)
      : null;
  return [
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Findings by rule and team" },
      make("table", { class: "heat" }, make("thead", {}, head), make("tbody", {}, rows)),
    ),
    more,
  ];
}

const MAX_FINDINGS = 200;

/* The findings of each rule, drawn when it is opened. */
function makeRules(model, findings) {
  const groups = new Map();
  for (const finding of findings) {
    if (!groups.has(finding.rule)) groups.set(finding.rule, []);
    groups.get(finding.rule).push(finding);
  }
  const order = (found) => SEVERITIES.indexOf(found[0].severity);
  const sorted = [...groups].sort(([, one], [, other]) => order(one) - order(other) || other.length - one.length);
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "All findings"),
    make(
      "div",
      { class: "rules" },
      sorted.map(([rule, found]) => makeRule(model, rule, found)),
    ),
  );
}

function makeRule(model, rule, found) {
  const list = make("ul", { class: "findings" });
  const fill = () => {
    if (list.childElementCount) return;
    append(
      list,
      found.slice(0, MAX_FINDINGS).map((finding) => makeFinding(model, finding, finding.envs)),
    );
    if (found.length > MAX_FINDINGS)
      append(list, [make("li", { class: "hint" }, `and ${found.length - MAX_FINDINGS} more`)]);
  };
  return make(
    "details",
    { class: "rule-findings", onToggle: fill },
    make(
      "summary",
      {},
      makeSeverity(found[0].severity),
      make("span", { class: "rule" }, rule),
      make(
        "span",
        { class: "hint" },
        [count(found.length, "finding"), model.rules.get(rule)].filter(Boolean).join(" · "),
      ),
    ),
    list,
  );
}

function orderByCount(items, nameOf) {
  const counts = new Map();
  for (const item of items) counts.set(nameOf(item), (counts.get(nameOf(item)) || 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
}

function makeHeat(rule, team, number, most, severity) {
  if (!number)
    return make("td", { class: "heat-cell" }, make("span", { class: "heat-none", "aria-label": "none" }, "·"));
  const level = Math.max(1, Math.ceil(Math.sqrt(number / most) * 5));
  const label = `${rule}, ${team}: ${count(number, "finding")}`;
  return make(
    "td",
    { class: "heat-cell" },
    make(
      "a",
      {
        class: `heat-${toneOf(severity)} level-${level}`,
        href: formatRoute(["fleet"], { rule, team }),
        title: label,
        "aria-label": label,
      },
      formatNumber(number),
    ),
  );
}

function countTrend(model) {
  const changes = new Map();
  if (!model.trend) return changes;
  const add = (finding, field) => {
    const found = changes.get(finding.rule) || { added: 0, fixed: 0 };
    found[field]++;
    changes.set(finding.rule, found);
  };
  for (const finding of model.trend.added) add(finding, "added");
  for (const finding of model.trend.fixed) add(finding, "fixed");
  return changes;
}

function formatTrend(change) {
  if (!change) return "–";
  return [
    change.added ? make("span", { class: "tone-text-bad" }, `+${change.added}`) : null,
    change.added && change.fixed ? " " : null,
    change.fixed ? make("span", { class: "tone-text-good" }, `−${change.fixed}`) : null,
  ];
}
