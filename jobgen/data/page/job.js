/* One job: its spec, and what each environment makes of it. A click on a line shows who set the value. */

/* The address of a job: its name, and its number if another job has the same name. */
function jobKey(job) {
  return job.isFirst ? job.name : `${job.name}~${job.index}`;
}

function findJob(model, key) {
  const numbered = /^(.*)~(\d+)$/.exec(key || "");
  const exact = model.jobs.find((job) => job.isFirst && job.name === key);
  return exact || (numbered && model.jobs[Number(numbered[2])]) || null;
}

function showJob(model, place, route) {
  const job = findJob(model, route.parts[1]);
  if (!job) {
    show(place, makeSweepPage(model, route.parts[1]) || makeNoJob(route.parts[1]));
    return { back: backToFleet };
  }
  const page = model.readJob(job);
  const environments = page.manifests.map((lines, env) => (lines ? env : -1)).filter((env) => env >= 0);
  const blame = makeBlame(model, job, () =>
    replaceRoute(["job", jobKey(job)], Object.assign(route.query, { env: "", line: "" })),
  );
  const compare = makeComparison(model, job, page, chooseColumns(model, route, job, environments), route.query, blame);
  show(
    place,
    make(
      "div",
      { class: "page job" },
      makeJobHead(model, job),
      make("div", { class: "job-top" }, makeSpec(model, job, page), makeJobFindings(model, job)),
      makeLaunches(model, job),
      environments.length ? makeCompareSection(model, job, environments, compare, route) : makeNoManifest(model),
      blame.element,
    ),
  );
  compare.start();
  return {
    back: backToFleet,
    close: blame.close,
    move: compare.move,
    differences: () => compare.toggle(),
  };
}

function makeNoJob(name) {
  return makePage("No such job", name || "", make("p", {}, make("a", { href: "#/fleet" }, "All jobs")));
}

/* The name of a sweep leads to its jobs. */
function makeSweepPage(model, name) {
  const members = name ? model.jobs.filter((job) => job.sweep === name) : [];
  if (!members.length) return null;
  const items = members.map((job) => make("li", {}, makeJobLink(job, job.name)));
  const link = make("a", { href: formatRoute(["fleet"], { q: name, open: name }) }, "Show them in the fleet");
  return makePage(name, `${count(members.length, "job")} of a sweep`, make("ul", {}, items), make("p", {}, link));
}

/* Go back to the fleet as it was left. */
function backToFleet() {
  location.hash = leftAt.address || formatRoute(["fleet"]);
}

function makeJobHead(model, job) {
  const facts = [
    ["Team", job.team],
    ["Owner", job.owner],
    ["Framework", job.framework],
    ["Sweep", job.sweep],
  ].filter(([, value]) => value);
  const cells = job.cells.filter(Boolean);
  return make(
    "header",
    { class: "page-head" },
    make(
      "p",
      { class: "crumbs" },
      make("a", { href: "#/fleet" }, "Fleet"),
      job.team ? [" / ", make("a", { href: formatRoute(["fleet"], { team: job.team }) }, job.team)] : null,
    ),
    make("h1", {}, job.name),
    make("p", { class: "lead" }, makePlace(model, job.file, job.line), job.source ? ` of ${job.source}` : null),
    make(
      "dl",
      { class: "facts" },
      facts.map(([label, value]) => make("div", {}, make("dt", {}, label), make("dd", {}, value))),
    ),
    make(
      "ul",
      { class: "cells" },
      cells.map((cell) => makeJobCell(model, cell)),
    ),
  );
}

function makeJobCell(model, cell) {
  const state = judgeState(stateOf(cell.state), [cell]);
  return make(
    "li",
    {},
    make(
      "div",
      { class: "cell-head" },
      make(
        "span",
        { class: "cell-env" },
        make("span", { class: `swatch series-${cell.env % 8}` }),
        model.environments[cell.env],
      ),
      make("span", { class: `state tone-text-${state.tone}` }, makeIcon(state.icon), state.label),
    ),
    make("span", {}, cell.gpus ? `${count(cell.gpus, "GPU")}, ` : "", count(cell.pods, "pod")),
    make("span", { class: "cell-more" }, [cell.kind, cell.namespace, cell.queue].filter(Boolean).join(" · ")),
    makeBound(model, cell) || make("span"),
    make(
      "div",
      { class: "cell-decisions" },
      cell.reason ? make("span", { class: "cell-more" }, makeMessage(cell.reason)) : null,
      makeDecisions(model, cell),
    ),
  );
}

/* What one run can take at most, in time, GPU hours and money; that it has no deadline, if it has GPUs. */
function makeBound(model, cell) {
  const run = model.capacity.runs.find((each) => each.cell === cell);
  if (!run && !cell.deadline) return null;
  const { currency } = model.head;
  const parts = describeBound(cell, Boolean(run && run.scheduled));
  if (currency && run && cell.cost >= 0) parts.push(`${formatMoney(cell.cost)} ${currency}`);
  return make("span", { class: "cell-more" }, parts.join(" · "));
}

/* What Kueue decides about the workloads of a cell, and why. */
function makeDecisions(model, cell) {
  const workloads = model.capacity ? model.capacity.workloads.filter((row) => model.cells[row.cell] === cell) : [];
  return workloads.map((row) => {
    const { label, tone } = describeDecision(row.decision);
    return make(
      "span",
      { class: "cell-more decision" },
      make("span", { class: `tone-text-${tone === "good" && !isClean(cell) ? "note" : tone}` }, label),
      row.reason ? [": ", makeMessage(row.reason)] : null,
      row.change ? ["; ", makeMessage(row.change)] : null,
    );
  });
}

/* What the job launches: each command as it runs, and its numbers in each environment. */
function makeLaunches(model, job) {
  const commands = new Map();
  for (const cell of job.cells.filter(Boolean)) {
    for (const row of cell.launches) {
      const key = `${row.roles}\n${row.command}`;
      if (!commands.has(key)) commands.set(key, { roles: row.roles, command: row.command, envs: [], rows: new Map() });
      const { envs, rows } = commands.get(key);
      if (!envs.includes(cell.env)) envs.push(cell.env);
      if (!rows.has(row.name)) rows.set(row.name, new Map());
      rows.get(row.name).set(cell.env, row);
    }
  }
  if (!commands.size) return null;
  return make(
    "section",
    { class: "panel launch", "aria-label": "Launch" },
    make("h2", {}, "Launch"),
    [...commands.values()].map((launch) => makeLaunch(model, launch)),
  );
}

function makeLaunch(model, { roles, command, envs, rows }) {
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Number"),
    envs.map((env) => make("th", { scope: "col", class: "is-text" }, model.environments[env])),
  );
  const body = [...rows].map(([name, cells]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      envs.map((env) => {
        const row = cells.get(env);
        return make("td", { class: "is-text" }, row ? [row.value, make("span", { class: "cell-more" }, ` ${row.source}`)] : "");
      }),
    ),
  );
  return [
    make("p", {}, roles ? `${roles}: ` : "", make("code", {}, command)),
    make("div", { class: "scroll" }, make("table", { class: "numbers" }, make("thead", {}, head), make("tbody", {}, body))),
  ];
}

/* The findings of a job. */
function makeJobFindings(model, job) {
  const found = mergeEnvironments(job.findings);
  const isStuck = job.cells.some((cell) => cell && describeDecision(cell.decision).tone === "bad");
  if (!found.length)
    return make(
      "section",
      { class: "panel", "aria-label": "Findings" },
      make("h2", {}, "Findings"),
      isStuck
        ? make("p", {}, "None")
        : make("p", { class: "all-good tone-text-good" }, makeIcon("check"), "None"),
    );
  const items = found.sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity));
  return make(
    "section",
    { class: "panel", "aria-label": "Findings" },
    make("h2", {}, "Findings"),
    make(
      "ul",
      { class: "findings" },
      items.map((finding) => makeFinding(model, finding, finding.envs)),
    ),
  );
}

function makeFinding(model, finding, envs) {
  return make(
    "li",
    { class: "finding" },
    makeSeverity(finding.severity),
    make(
      "div",
      { class: "finding-text" },
      make("p", {}, makeMessage(finding.message)),
      make(
        "p",
        { class: "finding-more" },
        makePlace(model, finding.file, finding.line, finding.column),
        makeRuleName(model, finding.rule),
        envs && envs.length ? make("span", {}, envs.join(", ")) : null,
      ),
    ),
  );
}

/* The name of a rule: it leads to its documentation. A policy of the repository has no page. */
function makeRuleName(model, rule) {
  const address = safeAddress(model.rules.get(rule)?.page);
  if (!address) return make("span", { class: "rule" }, rule);
  const title = `Documentation of ${rule}`;
  return make("a", { class: "rule", href: address, title, rel: "noreferrer", target: "_blank" }, rule);
}

/* A message with its values in backticks as code. */
function makeMessage(message) {
  return message.split(/`([^`]*)`/).map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

function makeSpec(model, job, page) {
  if (!page.spec.length) return null;
  const lines = page.spec.map((line) => {
    const address = safeAddress(model.addressOf(job.file, line.number));
    const number = address
      ? make("a", { class: "number", href: address, rel: "noreferrer", target: "_blank", tabindex: "-1" }, line.number)
      : make("span", { class: "number" }, line.number);
    return make(
      "div",
      { class: "line", "data-spec": line.number },
      number,
      make("span", { class: "code" }, makeYaml(line.text)),
    );
  });
  return make(
    "details",
    { class: "panel spec", open: page.spec.length <= 60 },
    make("summary", {}, make("h2", {}, "Spec")),
    make(
      "div",
      { class: "listing scroll", tabindex: "0", role: "region", "aria-label": "Spec" },
      make("div", { class: "listing-lines" }, lines),
    ),
  );
}

/* A line of YAML: the key, the value and the comment each have their own element. */
function makeYaml(text) {
  const match = /^(\s*(?:- )*)([^\s#:"'][^:#]*|"[^"]*"|'[^']*')(:)(\s.*|)$/.exec(text);
  if (/^\s*#/.test(text)) return make("span", { class: "yaml-comment" }, text);
  if (!match) return text;
  return [match[1], make("span", { class: "yaml-key" }, match[2]), match[3], match[4]];
}

/* Why there is no manifest: it was left out, or there is none. */
function makeNoManifest(model) {
  const omitted = model.omitted.find((row) => row.what === "manifests");
  if (omitted)
    return makeEmpty(
      "The manifests of this job are not in this page",
      `It would be too large: ${formatNumber(omitted.shown)} of ${formatNumber(omitted.total)} manifests are shown. Use jobgen render and jobgen explain.`,
    );
  return makeEmpty("No environment renders this job", "Its findings say why.");
}
