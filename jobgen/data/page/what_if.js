/* What changes of quota do: those that were asked for, or the smallest that admit the jobs that wait. */

function listWhatIf(model, env) {
  const { changes, heads, balance, rows } = model.timelines.whatIf;
  const found = ofEnvironment(changes, env);
  const ofKind = (kind) => found.filter((row) => row.kind === kind);
  const [head] = ofEnvironment(heads, env);
  const parts = [
    makeAsked(ofKind("asked"), head),
    makeBalance(ofEnvironment(balance, env)),
    makeMoved(ofEnvironment(rows, env)),
    makeSuggested(model, env, ofKind("suggested"), ofKind("untried")),
    makeImpossible(ofKind("impossible")),
  ].filter(Boolean);
  return parts.length ? parts : [makeNothingToChange(model, env)];
}

function makeNothingToChange(model, env) {
  const command = make("code", {}, `jobgen queue --what-if job/NAME.replicas=8 -e ${model.environments[env]}`);
  const has = ofEnvironment(model.capacity.workloads, env).length > 0;
  return makeEmpty(has ? "Every job is admitted" : "No quota data", ["Try a change with ", command, "."]);
}

function makeAsked(changes, head) {
  if (!changes.length) return null;
  const items = changes.map((row) => make("li", { class: "what-if" }, make("code", {}, row.name), make("span", { class: "hint" }, makeMessage(row.text))));
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "What if"),
    make("ul", { class: "what-ifs" }, items),
    head ? make("p", { class: "what-if-summary" }, capitalize(head.summary)) : null,
  );
}

/* The smallest changes of quota, and the command that shows what each does. */
function makeSuggested(model, env, changes, untried) {
  if (!changes.length && !untried.length) return null;
  const where = model.environments[env] === WITHOUT_OVERLAYS ? "" : ` -e ${quoteWord(model.environments[env])}`;
  const command = `jobgen queue ${changes.map((row) => `--what-if ${quoteWord(row.name)}`).join(" ")}${where}`;
  const items = changes.map((row) =>
    make("li", { class: "what-if" }, make("code", {}, row.name), make("span", { class: "hint" }, makeMessage(row.text))),
  );
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Smallest quota changes that admit all waiting jobs"),
    make("ul", { class: "what-ifs" }, items, untried.map((row) => make("li", { class: "hint" }, makeMessage(row.text)))),
    changes.length
      ? make("p", { class: "blame-command" }, make("code", {}, command), makeCopyButton("Copy", "Copy the command", command))
      : null,
  );
}

function makeImpossible(rows) {
  if (!rows.length) return null;
  const makeItem = (row) => make("li", { class: "workload" }, make("b", {}, row.name), make("span", { class: "workload-reason" }, makeMessage(row.text)));
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "No quota admits these jobs"),
    makeShortList({ class: "workloads" }, rows, 50, makeItem),
  );
}

function makeBalance(rows) {
  if (!rows.length) return null;
  const body = rows.map((row) => [row.name, row.before, row.before === row.after ? row.after : make("b", {}, row.after)]);
  return make("section", { class: "panel" }, make("h2", {}, "Before and after"), makeTextTable("Before and after", ["", "before", "after"], body));
}

function makeMoved(rows) {
  if (!rows.length) return null;
  const body = rows.map((row) => [row.name, row.state, row.starts, row.ends, row.remark]);
  const head = ["Job", "State", "Starts", "Ends", "Change"];
  return make("section", { class: "panel" }, make("h2", {}, "Jobs that change"), makeTextTable("Jobs that change", head, body));
}

/* A table of texts; the first cell of a row is its head. */
function makeTextTable(label, head, rows) {
  const titles = head.map((text) => (text ? make("th", { scope: "col", class: "is-text" }, text) : make("td")));
  const lines = rows.map(([name, ...cells]) =>
    make("tr", {}, make("th", { scope: "row" }, name), cells.map((cell) => make("td", { class: "is-text" }, typeof cell === "string" ? makeMessage(cell) : cell))),
  );
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make("table", { class: "numbers" }, make("thead", {}, make("tr", {}, titles)), make("tbody", {}, lines)),
  );
}
