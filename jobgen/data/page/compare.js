/* The manifests of a job side by side, with their differences, and who set the value of a line. */

/* Layers, by the tone of their mark in the margin. */
const LAYER_TONES = [
  [/^job\b/, "job"],
  [/^patch/, "patch"],
  [/^defaults/, "defaults"],
  [/^kind/, "kind"],
];

function layerTone(layer) {
  const found = LAYER_TONES.find(([pattern]) => pattern.test(layer));
  return found ? found[1] : "other";
}

/* Which environments are shown: those of the address, else as many as fit, of the same kind if several have it. */
function chooseColumns(model, route, job, environments) {
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
        goTo(["job", jobKey(job)], { ...route.query, envs: next.map((each) => model.environments[each]).join(",") });
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
      "Click on a line to see who set it. The mark in the margin is the layer: ",
      ["job", "patch", "defaults", "kind"].map((tone) => make("span", { class: `layer-name layer-${tone}` }, tone)),
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
  const state = { onlyDifferences: query.diff === "1", active: -1, cells: [], open: new Set() };
  const button = make("button", { type: "button", class: "toggle", onClick: () => toggle() });
  const choose = (row, column) => {
    const line = rows[row][column] >= 0 ? manifests[column][rows[row][column]] : null;
    if (!line) return;
    element.querySelector(".is-chosen")?.classList.remove("is-chosen");
    element.querySelector(`[data-at="${row},${column}"]`)?.classList.add("is-chosen");
    state.active = row;
    blame.show(line, model.environments[columns[column]], job);
  };
  function redraw() {
    show(button, "Only differences");
    button.hidden = columns.length < 2;
    button.setAttribute("aria-pressed", String(state.onlyDifferences));
    const heads = columns.map((env) =>
      make(
        "div",
        { class: "side-head" },
        make("span", { class: `swatch series-${env % 8}` }),
        model.environments[env],
        make("span", { class: "side-kind" }, job.cells[env] ? job.cells[env].kind : ""),
      ),
    );
    show(
      element,
      make("div", { class: "side-row side-heads" }, heads),
      drawComparison(rows, kinds, texts, manifests, state, redraw),
    );
  }
  function toggle() {
    state.onlyDifferences = !state.onlyDifferences;
    replaceRoute(["job", jobKey(job)], { ...query, diff: state.onlyDifferences ? "1" : "" });
    query.diff = state.onlyDifferences ? "1" : "";
    redraw();
  }
  element.addEventListener("click", (event) => {
    const at = event.target.closest("[data-at]");
    if (at) choose(...at.dataset.at.split(",").map(Number));
  });
  function move(step) {
    const shown = [...element.querySelectorAll("button[data-at]")].map((each) => Number(each.dataset.at.split(",")[0]));
    const next = step > 0 ? shown.find((row) => row > state.active) : shown.filter((row) => row < state.active).pop();
    if (next === undefined) return;
    const column = rows[next].findIndex((index) => index >= 0);
    choose(next, column);
    element.querySelector(`[data-at="${next},${column}"]`).focus();
  }
  redraw();
  return { element, button, columns, toggle, move, open: () => {} };
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
    drawn.push(makeFold(row, end, state, redraw));
    row = end - 1;
  }
  if (!kinds.some((kind) => kind !== "equal") && state.onlyDifferences)
    return makeEmpty("The manifests are equal", "Only the environment differs.");
  return drawn;
}

function makeFold(start, end, state, redraw) {
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
        tabindex: row === 0 && column === 0 ? "0" : "-1",
      },
      make("span", { class: "code" }, content),
    );
  });
  return make("div", { class: `side-row is-${kind}` }, sides);
}

function makeChanged(text, others) {
  const [before, changed, after] = splitChange(text, others);
  return [before, changed ? make("mark", {}, changed) : null, after];
}

/* The panel that shows who set a value: the winning layer first, then what it overrides. */
function makeBlame(model, job) {
  const element = make("aside", { class: "blame", "aria-label": "Who set it", hidden: true });
  const close = () => {
    const wasOpen = !element.hidden;
    element.hidden = true;
    document
      .querySelectorAll(".is-chosen, .is-source")
      .forEach((each) => each.classList.remove("is-chosen", "is-source"));
    return wasOpen;
  };
  function showLine(line, environment) {
    element.hidden = false;
    const sources = line.sources.map((source, index) =>
      make(
        "li",
        { class: `source layer-${layerTone(source.layer)}` },
        make(
          "span",
          { class: "source-layer" },
          source.layer,
          index ? make("span", { class: "overridden" }, "overridden") : null,
        ),
        source.value ? make("code", { class: "source-value" }, source.value) : null,
        makePlace(model, source.file, source.line, source.column),
      ),
    );
    show(
      element,
      make(
        "div",
        { class: "blame-head" },
        make("h2", {}, "Who set it"),
        make("span", { class: "blame-env" }, environment),
        make("button", { type: "button", class: "quiet", onClick: close }, makeIcon("cross", "Close")),
      ),
      make("p", { class: "blame-line" }, make("code", {}, line.text.trim())),
      sources.length
        ? make("ol", {}, sources)
        : make("p", { class: "hint" }, "This line only opens a block; its values have their own places."),
    );
    markSpec(line.sources.filter((source) => source.file === job.file).map((source) => source.line));
    announce(
      line.sources.length
        ? `${line.sources[0].layer}, ${line.sources[0].file} line ${line.sources[0].line}`
        : "no source",
    );
  }
  return { element, show: showLine, close };
}

/* Mark the lines of the spec that a value comes from. */
function markSpec(numbers) {
  document.querySelectorAll(".is-source").forEach((each) => each.classList.remove("is-source"));
  for (const number of numbers) document.querySelector(`[data-spec="${Number(number)}"]`)?.classList.add("is-source");
}
