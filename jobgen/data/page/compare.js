/* The manifests of a job side by side, with their differences. */

/* Which environments are shown: those of the address, else as many as fit, of the same kind if several have it. */
function chooseColumns(model, route, job, environments) {
  const linked = model.environments.indexOf(route.query.env);
  const chosen = chooseShown(model, route, job, environments);
  if (!environments.includes(linked) || chosen.includes(linked)) return chosen;
  return [...chosen.slice(0, route.query.envs ? undefined : -1), linked].sort((one, other) => one - other);
}

function chooseShown(model, route, job, environments) {
  const chosen = (route.query.envs || "")
    .split(",")
    .map((name) => model.environments.indexOf(name))
    .filter((env) => environments.includes(env));
  if (chosen.length) return chosen;
  const kinds = orderByCount(environments, (env) => job.cells[env].kind);
  const same = environments.filter((env) => job.cells[env].kind === kinds[0]?.[0]);
  const fitting = Math.max(1, Math.min(3, Math.floor(window.innerWidth / 420)));
  return (same.length > 1 ? same : environments).slice(0, fitting);
}

function makeCompareSection(model, job, environments, compare, route) {
  const choices = environments.map((env) => {
    const isShown = compare.columns.includes(env);
    const toggle = () => {
      const next = isShown
        ? compare.columns.filter((each) => each !== env)
        : [...compare.columns, env].sort((one, other) => one - other);
      if (next.length)
        goTo(["job", jobKey(job)], {
          ...route.query,
          env: "",
          line: "",
          envs: next.map((each) => model.environments[each]).join(","),
        });
    };
    return make(
      "button",
      { type: "button", "aria-pressed": String(isShown), onClick: toggle },
      model.environments[env],
    );
  });
  return make(
    "section",
    { class: "panel compare", "aria-label": "Manifests" },
    make(
      "div",
      { class: "panel-head" },
      make("h2", {}, "Manifests"),
      make(
        "div",
        { class: "controls" },
        make("div", { class: "choice", role: "group", "aria-label": "Environments" }, choices),
        compare.button,
      ),
    ),
    make(
      "p",
      { class: "hint" },
      "Click on a line, or press Enter, to see who set it. The mark in the margin is the layer: ",
      ["job", "patch", "defaults", "kind", "other"].map((tone) =>
        make("span", { class: `layer-name layer-${tone}` }, tone),
      ),
    ),
    compare.element,
  );
}

/* The manifests side by side. */
function makeComparison(model, job, page, columns, query, blame) {
  const manifests = columns.map((env) => page.manifests[env]);
  const texts = manifests.map((lines) => lines.map((line) => line.text));
  const rows = columns.length ? alignColumns(texts.map(keyLines)) : [];
  const kinds = rows.map((at) => compareLines(at, texts));
  const element = make("div", { class: "side-by-side scroll" });
  element.style.setProperty("--columns", String(columns.length));
  const state = { onlyDifferences: query.diff === "1", active: -1, column: 0, open: new Set() };
  const button = make("button", { type: "button", class: "toggle", onClick: () => toggle() });
  const find = (row, column) => element.querySelector(`button[data-at="${row},${column}"]`);
  const saveRoute = (changes) => replaceRoute(["job", jobKey(job)], Object.assign(query, changes));
  function choose(row, column) {
    const index = rows[row][column];
    if (index === undefined || index < 0) return;
    element.querySelector(".is-chosen")?.classList.remove("is-chosen");
    find(row, column)?.classList.add("is-chosen");
    Object.assign(state, { active: row, column });
    const env = model.environments[columns[column]];
    saveRoute({ env, line: String(index + 1) });
    blame.show(manifests[column][index], env, findField(texts[column], index));
  }
  function redraw() {
    show(button, "Only differences");
    button.hidden = columns.length < 2;
    button.setAttribute("aria-pressed", String(state.onlyDifferences));
    show(
      element,
      make(
        "div",
        { class: "side-row side-heads" },
        columns.map((env, column) => makeSideHead(model, job, env, texts[column])),
      ),
      drawComparison(rows, kinds, texts, manifests, state, redraw),
    );
    element.querySelector("[data-at]")?.setAttribute("tabindex", "0");
  }
  function toggle() {
    state.onlyDifferences = !state.onlyDifferences;
    saveRoute({ diff: state.onlyDifferences ? "1" : "" });
    redraw();
  }
  function move(step) {
    const next = findRow(element, rows, state.active, state.column, step);
    if (!next) return;
    choose(next.row, next.column);
    find(next.row, next.column).focus();
  }
  /* Show the line of the address. */
  function start() {
    const column = columns.indexOf(model.environments.indexOf(query.env));
    const row = rows.findIndex((at) => at[column] === Number(query.line) - 1);
    if (column < 0 || row < 0) return;
    state.open.add(row);
    redraw();
    choose(row, column);
    find(row, column).scrollIntoView({ block: "center" });
  }
  element.addEventListener("click", (event) => {
    const at = event.target.closest("[data-at]");
    if (at) choose(...at.dataset.at.split(",").map(Number));
  });
  element.addEventListener("keydown", (event) => moveFocus(event, element, rows));
  element.addEventListener("focusin", (event) => moveTabStop(element, event.target));
  redraw();
  return { element, button, columns, toggle, move, start };
}

function makeSideHead(model, job, env, texts) {
  const name = model.environments[env];
  const text = `${texts.join("\n")}\n`;
  return make(
    "div",
    { class: "side-head" },
    make("span", { class: `swatch series-${env % 8}` }),
    name,
    make("span", { class: "side-kind" }, job.cells[env] ? job.cells[env].kind : ""),
    makeCopyButton("Copy", `Copy the manifest of ${name}`, text),
  );
}

/* The nearest row that is shown above or below another one; in the same column, if that has a line there. */
function findRow(element, rows, from, column, step) {
  const shown = [...element.querySelectorAll(".side-row[data-row]")].map((each) => Number(each.dataset.row));
  const row = step > 0 ? shown.find((each) => each > from) : shown.filter((each) => each < from).pop();
  if (row === undefined) return null;
  return { row, column: rows[row][column] >= 0 ? column : rows[row].findIndex((index) => index >= 0) };
}

/* The arrows move between lines and environments; Enter then shows who set the value, as a click does. */
function moveFocus(event, element, rows) {
  const at = event.target.dataset.at;
  const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
  if (!at || !step || event.ctrlKey || event.metaKey || event.altKey) return;
  const [row, column] = at.split(",").map(Number);
  const next = step[0] ? findRow(element, rows, row, column, step[0]) : { row, column: column + step[1] };
  event.preventDefault();
  if (next) element.querySelector(`button[data-at="${next.row},${next.column}"]`)?.focus();
}

/* One line is reached by Tab: the last one that had the focus. */
function moveTabStop(element, target) {
  if (!target.dataset.at) return;
  for (const each of element.querySelectorAll('[data-at][tabindex="0"]')) each.setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
}

/* "equal", "changed" or "missing": what a row is. */
function compareLines(at, texts) {
  if (at.some((index) => index < 0)) return "missing";
  const first = texts[0][at[0]];
  return at.every((index, column) => texts[column][index] === first) ? "equal" : "changed";
}

const CONTEXT = 2;

/* Return the rows; runs of equal rows are folded if only differences are wanted. */
function drawComparison(rows, kinds, texts, manifests, state, redraw) {
  const near = kinds.map(
    (kind, row) =>
      !state.onlyDifferences ||
      kinds.slice(Math.max(0, row - CONTEXT), row + CONTEXT + 1).some((each) => each !== "equal"),
  );
  const drawn = [];
  for (let row = 0; row < rows.length; row++) {
    if (near[row] || state.open.has(row)) {
      drawn.push(makeSides(row, rows[row], kinds[row], texts, manifests));
      continue;
    }
    let end = row;
    while (end < rows.length && !near[end] && !state.open.has(end)) end++;
    drawn.push(makeEqualFold(row, end, state, redraw));
    row = end - 1;
  }
  if (!kinds.some((kind) => kind !== "equal") && state.onlyDifferences)
    return makeEmpty("The manifests are equal", "Only the environment differs.");
  return drawn;
}

function makeEqualFold(start, end, state, redraw) {
  const open = () => {
    for (let row = start; row < end; row++) state.open.add(row);
    redraw();
  };
  return make(
    "button",
    { type: "button", class: "fold", onClick: open },
    makeIcon("down"),
    count(end - start, "equal line"),
  );
}

function makeSides(row, at, kind, texts, manifests) {
  const sides = at.map((index, column) => {
    if (index < 0) return make("span", { class: "side is-missing" });
    const line = manifests[column][index];
    const tone = line.sources.length ? layerTone(line.sources[0].layer) : "none";
    const others = at
      .map((each, other) => (each >= 0 ? texts[other][each] : null))
      .filter((text) => text !== null && text !== line.text);
    const content = others.length ? makeChanged(line.text, others) : makeYaml(line.text);
    return make(
      "button",
      {
        type: "button",
        class: `side layer-${tone}`,
        "data-at": `${row},${column}`,
        tabindex: "-1",
      },
      make("span", { class: "code" }, content),
    );
  });
  return make("div", { class: `side-row is-${kind}`, "data-row": row }, sides);
}

function makeChanged(text, others) {
  const [before, changed, after] = splitChange(text, others);
  return [before, changed ? make("mark", {}, changed) : null, after];
}
