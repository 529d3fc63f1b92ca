/* The model that the views draw: the tables of the data, joined. Manifests are decoded when a job is opened. */

const NONE = -1;

/* Files with this prefix are part of jobgen, not of the repository. */
const BUILT_IN = "built-in:";

/* The environment of a repository that has no overlays. */
const WITHOUT_OVERLAYS = "no overlays";

function buildModel(data) {
  const files = data.table("files").map((file) => file.path);
  const changedFiles = new Set(data.table("changedFiles").map((file) => file.path));
  const model = {
    head: data.head,
    hasFleet: data.view === "fleet",
    isTimeline: data.view === "queue",
    environments: data.table("environments").map((environment) => environment.name || WITHOUT_OVERLAYS),
    omitted: data.table("omitted"),
    rules: new Map(data.table("rules").map((rule) => [rule.name, rule])),
    changedFiles,
    addressOf: (file, line, revision) => makeAddress(data.head, changedFiles, file, line, revision),
  };
  joinFleet(model, data, files);
  model.errors = data.table("errors").map((row) => joinFinding(model, files, row));
  model.trend = joinTrend(model, data, files);
  model.capacity = joinCapacity(model, data);
  model.timelines = joinTimelines(model, data);
  model.changes = data.view === "changes" ? joinChanges(model, data, files) : null;
  const origins = data.table("origins").map((origin) => ({ layer: origin.layer, file: files[origin.file] || "" }));
  model.readJob = (job) => readJob(data, origins, job);
  return model;
}

/* The address of a line in Git; none if it is not known. A file that differs from the revision has none. */
function makeAddress(head, changed, file, line, revision = head.revision) {
  if (!head.link || !revision || !file || file.startsWith(BUILT_IN)) return null;
  if (revision === head.revision && changed.has(file)) return null;
  const values = { revision: encodeURIComponent(revision), file: encodePath(head.prefix, file), line: line || 1 };
  const template = line > 0 ? head.link : head.link.replace(/#[^#]*\{line\}[^#]*$/, "");
  return template.replace(/\{(revision|file|line)\}/g, (_, name) => values[name]);
}

function encodePath(prefix, file) {
  return `${prefix}/${file}`.split("/").filter(Boolean).map(encodeURIComponent).join("/");
}

/* The jobs with their cells, and the findings of each cell. */
function joinFleet(model, data, files) {
  const names = new Set();
  model.jobs = data.table("jobs").map((row, index) => {
    const isFirst = !names.has(row.name);
    names.add(row.name);
    const cells = model.environments.map(() => null);
    return { ...row, index, isFirst, file: files[row.file] || "", team: "", owner: "", cells, findings: [] };
  });
  model.cells = data.table("cells");
  for (const cell of model.cells) {
    const job = model.jobs[cell.job];
    Object.assign(cell, { job, env: cell.environment, findings: [], launches: [] });
    job.cells[cell.env] = cell;
    job.team = job.team || cell.team;
    job.owner = job.owner || cell.owner;
  }
  for (const row of data.table("launches")) model.cells[row.cell].launches.push(row);
  model.findings = data.table("findings").map((row) => joinFinding(model, files, row));
  for (const finding of model.findings) {
    if (!finding.job) continue;
    const cells = finding.job.cells.filter(
      (cell) => cell && (finding.environment === NONE || cell.env === finding.environment),
    );
    for (const cell of cells) cell.findings.push(finding);
    finding.job.findings.push(finding);
  }
}

function joinFinding(model, files, row) {
  const job = row.job === undefined || row.job === NONE ? null : model.jobs[row.job];
  const envs = row.environment === NONE ? [] : [model.environments[row.environment]];
  const file = files[row.file] || "";
  return { ...row, file, job, team: row.team || (job ? job.team : ""), envs };
}

/* The entry of a finding in a lint: one fault of several environments and jobs is one entry. */
function entryOf(finding) {
  if (finding.entry !== undefined) return finding.entry;
  const { severity, rule, message, file, line, column } = finding;
  return [severity, rule, message, file, line, column].join("\n");
}

/* How many entries a lint shows for findings. */
function countEntries(findings) {
  return new Set(findings.map(entryOf)).size;
}

/* Findings as the entries of a lint, each with its environments in the order of the page, and with its jobs. */
function mergeEnvironments(findings) {
  const entries = new Map();
  for (const finding of [...findings].sort((one, other) => one.environment - other.environment)) {
    const key = entryOf(finding);
    if (!entries.has(key)) entries.set(key, { ...finding, envs: [], jobs: [] });
    const entry = entries.get(key);
    entry.envs.push(...finding.envs.filter((env) => !entry.envs.includes(env)));
    if (finding.job && !entry.jobs.includes(finding.job)) entry.jobs.push(finding.job);
    if (finding.status === "new") entry.status = "new";
  }
  return [...entries.values()];
}

/* New and fixed findings; null without --since. */
function joinTrend(model, data, files) {
  const fixed = data.table("fixed").map((row) => joinFinding(model, files, row));
  const added = model.findings.filter((finding) => finding.status === "new");
  if (!data.head.since && !fixed.length && !added.length) return null;
  return { since: data.head.since || "the revision compared", added, fixed };
}

/* Queues, cohorts, workloads and costs. */
function joinCapacity(model, data) {
  const workloads = data.table("workloads").map((row) => ({ ...row, decision: nameDecision(row) }));
  for (const row of workloads) {
    const cell = model.cells[row.cell];
    if (cell && row.decision === UNQUEUED) cell.decision = UNQUEUED;
  }
  return {
    quotas: data.table("quotas"),
    workloads,
    notes: data.table("notes"),
    limits: data.table("limits"),
    costs: data.table("costs"),
    runs: data.table("runs").map((row) => ({ ...row, cell: model.cells[row.cell] })),
  };
}

/* A job without a queue is unmanaged on purpose. One with a queue starts without quota. */
const UNQUEUED = "unqueued";

function nameDecision(row) {
  return row.decision === "unmanaged" && !row.queue ? UNQUEUED : row.decision;
}

/* Return the spec and the manifests of a job, with the layer and the file of every source. */
function readJob(data, origins, job) {
  const nameSource = (source) => ({ ...origins[source.origin], line: source.line, value: source.value });
  const nameLine = (line) => ({ text: line.text, sources: line.sources.map(nameSource) });
  const manifests = job.cells.map((cell) =>
    cell && cell.manifest !== NONE ? data.manifestLines(cell.manifest).map(nameLine) : null,
  );
  if (job.spec === NONE) return { spec: [], manifests };
  return { spec: data.specLines(job.spec).map((text, index) => ({ text, number: index + 1 })), manifests };
}

/* Return the names of items with how many items have each, most frequent first. */
function orderByCount(items, nameOf) {
  const counts = new Map();
  for (const item of items) counts.set(nameOf(item), (counts.get(nameOf(item)) || 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
}
