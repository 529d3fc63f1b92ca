/* What needs attention, first on the page: what fails, what exceeds a budget, and what waits. */

/* How urgent a job of an environment is; 0 if nothing is wrong with it. */
function measureUrgency(cell) {
  if (cell.state === "broken" || hasErrors(cell)) return 4;
  if (describeDecision(cell.decision).tone === "bad") return 3;
  if (cell.decision === "waits") return 2;
  return hasFinding(cell, "warning") ? 1 : 0;
}

/* What a team lead must look at: a name, a tone, the number of jobs, and where they are shown. */
function listAttention(model, { team }) {
  const jobs = model.jobs.filter((job) => job.isJob && (!team || (job.team || UNSET) === team));
  const countJobs = (test) => jobs.filter((job) => job.cells.some((cell) => cell && test(cell))).length;
  const inFleet = (query) => formatRoute(["fleet"], { team, ...query });
  const exceeded = model.capacity.limits.filter((row) => row.share > WHOLE_SHARE);
  const [first] = exceeded;
  const inCapacity = first ? formatRoute(["capacity"], { env: model.environments[first.environment], q: first.owner }) : "";
  return [
    ["cannot be rendered", "bad", countJobs((cell) => cell.state === "broken"), inFleet({ state: "broken" }), "ban"],
    ["with errors", "bad", countJobs(hasErrors), inFleet({ severity: "error" }), "cross"],
    ["over budget", "bad", exceeded.length, inCapacity, "alert"],
    ["never admitted", "bad", countJobs((cell) => cell.decision === "never"), inFleet({ decision: "never" }), "ban"],
    ["waiting", "warn", countJobs((cell) => cell.decision === "waits"), inFleet({ decision: "waits" }), "clock"],
    ["with warnings", "warn", countJobs((cell) => hasFinding(cell, "warning")), inFleet({ severity: "warning" }), "alert"],
  ].filter(([, , number]) => number);
}

/* A line of links; null if nothing needs attention. */
function makeAttention(model, query) {
  const found = listAttention(model, query);
  if (!found.length) return null;
  const items = found.map(([text, tone, number, href, icon]) => {
    const noun = text === "over budget" ? (number === 1 ? "limit" : "limits") : number === 1 ? "job" : "jobs";
    const parts = [makeIcon(icon), make("b", {}, formatNumber(number)), ` ${noun} ${text}`];
    return make("li", {}, make("a", { class: `attention-link tone-${tone}`, href }, parts));
  });
  return make(
    "section",
    { class: "attention", "aria-labelledby": "attention" },
    make("h2", { id: "attention" }, "Needs attention"),
    make("ul", {}, items),
  );
}
