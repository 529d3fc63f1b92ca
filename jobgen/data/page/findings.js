/* Findings of the fleet: the heat map, what changed since a revision, and the list of what is chosen. */

const MAX_FINDINGS = 100;
const MAX_NAMED_JOBS = 3;

function showFindings(model, place, route) {
  const { rule = "", team = "", env = "" } = route.query;
  // A wrong severity would show a fleet without findings.
  const severity = SEVERITIES.find((each) => each === route.query.severity) || "";
  const query = { severity, rule, team, env };
  const ofSeverity = (finding) => !severity || finding.severity === severity;
  const isChosen = (finding) =>
    (!rule || finding.rule === rule) &&
    (!team || (finding.team || UNSET) === team) &&
    (!env || finding.envs.includes(env) || (env === UNSET && !finding.envs.length)) &&
    ofSeverity(finding);
  const findings = model.findings.filter(ofSeverity);
  const trend = model.trend && {
    since: model.trend.since,
    added: model.trend.added.filter(ofSeverity),
    fixed: model.trend.fixed.filter(ofSeverity),
  };
  const columns = chooseFindingColumns(model);
  const counts = new FindingCounts(findings, trend, columns);
  const list = makeChosen(model, findings.filter(isChosen), query);
  const hasRules = counts.severities.size > 0;
  show(
    place,
    makePage(
      "Findings",
      `${count(countEntries(findings), "finding")} of ${count(new Set(findings.map((each) => each.rule)).size, "rule")}`,
      makeSeverityChoice(query),
      makeTrendSummary(trend, findings),
      make(
        "section",
        { class: "panel" },
        make("h2", {}, columns.label ? `Rules by ${columns.label}` : "Rules"),
        hasRules ? make("p", { class: "hint" }, `Click a ${columns.label ? `number, a rule or ${columns.label === "team" ? "a team" : "an environment"}` : "rule"} to list its findings below.`) : null,
        hasRules
          ? makeHeatMap(model, counts, query)
          : makeEmpty(severity ? `No ${severity}s` : "No findings", "Every job of every environment passes."),
      ),
      makeTrendLists(model, trend, isChosen),
      findings.length ? list.element : null,
    ),
  );
  if (rule || team || env) list.reveal();
  return { print: (isPrinting) => unfoldForPaper(place, isPrinting) };
}

/* On paper all lists are open; afterwards those that were closed are closed again. */
function unfoldForPaper(place, isPrinting) {
  for (const fold of place.querySelectorAll(".trend, .rule-findings")) {
    if (isPrinting) fold.dataset.unfolded = fold.open ? "" : "true";
    if (isPrinting) fold.dispatchEvent(new Event("fill")); // the event of opening would come too late
    if (isPrinting) fold.open = true;
    else if (fold.dataset.unfolded) fold.open = false;
  }
}

function makeSeverityChoice(query) {
  const choices = [["", "all"], ...SEVERITIES.map((each) => [each, `${each}s`])];
  const choose = (severity) => goTo(["findings"], { ...query, severity });
  return make("div", { class: "controls" }, makeChoice("Severity", choices, query.severity, choose));
}

/* How many findings are new and fixed, and how many there were; how to get this if it is not known. */
function makeTrendSummary(trend, findings) {
  if (!trend) {
    const command = make("code", {}, "jobgen report -o site/ --since REV");
    return make("p", { class: "hint trend-hint" }, "To see what is new and fixed since a revision, run ", command, ".");
  }
  const [now, added, fixed] = [findings, trend.added, trend.fixed].map(countEntries);
  return make(
    "section",
    { class: "trend-totals", "aria-label": `Trend since ${trend.since}` },
    make("h2", {}, "Since ", make("code", {}, trend.since)),
    makeTotal(`+${formatNumber(added)}`, "new", null, added && "warn"),
    makeTotal(`−${formatNumber(fixed)}`, "fixed", null, fixed && "good"),
    make("p", { class: "hint" }, `${formatNumber(now - added + fixed)} then, ${formatNumber(now)} now`),
  );
}

/* The new and the fixed findings that are chosen. */
function makeTrendLists(model, trend, isChosen) {
  if (!trend) return null;
  const [added, fixed] = [trend.added.filter(isChosen), trend.fixed.filter(isChosen)];
  if (!added.length && !fixed.length) return null;
  const fold = (title, chosen) =>
    make(
      "details",
      { class: "trend", open: chosen.length > 0 && chosen.length <= 5 },
      make("summary", {}, make("b", {}, formatNumber(countEntries(chosen))), ` ${title}`),
      chosen.length ? makeFindingList(model, chosen) : make("p", { class: "hint" }, "none"),
    );
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Since ", make("code", {}, trend.since)),
    make("div", { class: "trends" }, fold("new", added), fold("fixed", fixed)),
  );
}

/* The findings that are chosen, by rule; each rule is drawn when it is opened. */
function makeChosen(model, findings, query) {
  const groups = new Map();
  for (const finding of findings) {
    if (!groups.has(finding.rule)) groups.set(finding.rule, []);
    groups.get(finding.rule).push(finding);
  }
  const order = (found) => SEVERITIES.indexOf(found[0].severity);
  const number = (found) => countEntries(found);
  const sorted = [...groups].sort(([, one], [, other]) => order(one) - order(other) || number(other) - number(one));
  const rules = sorted.map(([rule, found]) => makeRule(model, rule, found));
  const isFiltered = FILTERS_OF_FINDINGS.some((name) => query[name]);
  const title = make("h2", { tabindex: "-1" }, isFiltered ? count(countEntries(findings), "finding") : "All findings");
  const element = make(
    "section",
    { class: "panel chosen" },
    make("div", { class: "panel-head" }, title, isFiltered ? makeChosenChips(query) : null),
    rules.length ? make("div", { class: "rules" }, rules) : makeEmpty("No finding matches these filters"),
  );
  const reveal = () => {
    if (rules.length === 1) rules[0].open = true;
    title.focus({ preventScroll: true });
    element.scrollIntoView({ block: "start" });
  };
  return { element, reveal };
}

const FILTERS_OF_FINDINGS = ["rule", "team", "env"];

/* The rule, the team and the environment that are chosen, and the way to their jobs. */
function makeChosenChips(query) {
  const chips = FILTERS_OF_FINDINGS
    .filter((name) => query[name])
    .map((name) => makeChip(name, query[name], () => goTo(["findings"], { ...query, [name]: "" })));
  const jobs = make("a", { class: "chosen-jobs", href: formatRoute(["fleet"], query) }, "Show the jobs");
  return make("div", { class: "chips" }, chips, jobs);
}

function makeRule(model, rule, found) {
  const place = make("div", {});
  const fill = () => {
    if (!place.childElementCount) show(place, makeFindingList(model, found));
  };
  const about = model.rules.get(rule);
  const text = [count(countEntries(found), "finding"), about?.summary ? [" · ", makeMessage(about.summary)] : null];
  const summary = [
    makeSeverity(found[0].severity),
    make("span", { class: "rule" }, rule),
    make("span", { class: "hint" }, text),
  ];
  return make("details", { class: "rule-findings", onToggle: fill, onFill: fill }, make("summary", {}, summary), place);
}

/* A sign beside the name of a rule that filters: it leads to the documentation. */
function makeRuleHelp(model, rule) {
  const address = safeAddress(model.rules.get(rule)?.page);
  if (!address) return null;
  const label = `Documentation of ${rule}`;
  const link = { class: "rule-help", href: address, title: label, rel: "noreferrer", target: "_blank" };
  return make("a", link, makeIcon("out", label));
}

/* A list of findings that grows on request. */
function makeFindingList(model, several) {
  const findings = mergeEnvironments(several);
  const list = make("ul", { class: "findings" });
  const more = make("button", { type: "button", class: "more", onClick: () => grow() });
  let shown = 0;
  const grow = () => {
    const next = findings.slice(shown, shown + MAX_FINDINGS).map((finding) => makeFleetFinding(model, finding));
    append(list, next);
    shown += next.length;
    const left = findings.length - shown;
    more.hidden = !left;
    show(more, `Show ${formatNumber(Math.min(left, MAX_FINDINGS))} of ${formatNumber(left)} more`);
  };
  grow();
  return [list, more];
}

/* A finding with its job, and whether it is new. */
function makeFleetFinding(model, finding) {
  const item = makeFinding(model, finding, finding.envs);
  const more = item.querySelector(".finding-more");
  const links = finding.jobs.slice(0, MAX_NAMED_JOBS).map((job) => make("a", { href: formatRoute(["job", jobKey(job)]) }, job.name));
  append(more, links);
  if (finding.jobs.length > MAX_NAMED_JOBS) append(more, [`and ${count(finding.jobs.length - MAX_NAMED_JOBS, "more job")}`]);
  if (finding.status === "new") append(more, [make("span", { class: "badge tone-warn" }, "new")]);
  return item;
}
