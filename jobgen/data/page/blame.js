/* Who set the value of a line: the layer that wins, and what it overrides. */

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

/* The panel that shows who set a value: the winning layer first, then what it overrides. */
function makeBlame(model, job, onClose) {
  const element = make("aside", { class: "blame", "aria-label": "Who set it", hidden: true });
  const close = () => {
    const wasOpen = !element.hidden;
    element.hidden = true;
    document
      .querySelectorAll(".is-chosen, .is-source")
      .forEach((each) => each.classList.remove("is-chosen", "is-source"));
    if (wasOpen) onClose();
    return wasOpen;
  };
  function showLine(line, environment, field) {
    element.hidden = false;
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
      line.sources.length
        ? make(
            "ol",
            {},
            line.sources.map((source, index) => makeSource(model, source, index)),
          )
        : make("p", { class: "hint" }, "This line only opens a block; its values have their own places."),
      field && line.sources.length ? makeExplainCommand(job, field, environment) : null,
    );
    markSpec(line.sources.filter((source) => source.file === job.file).map((source) => source.line));
    announce(describeSource(line.sources[0]));
  }
  return { element, show: showLine, close };
}

function makeSource(model, source, index) {
  return make(
    "li",
    { class: `source layer-${layerTone(source.layer)}` },
    make(
      "span",
      { class: "source-layer" },
      source.layer,
      index ? make("span", { class: "overridden" }, "overridden") : null,
    ),
    index ? make("code", { class: "source-value" }, source.value) : null,
    makePlace(model, source.file, source.line, source.column),
    isWritten(source) ? null : make("span", { class: "hint" }, describeOrigin(source)),
  );
}

/* Whether a file of the repository sets a value. */
function isWritten(source) {
  return Boolean(source.file) && !source.file.startsWith(BUILT_IN);
}

function describeOrigin(source) {
  return source.file ? "a default that is part of jobgen" : "jobgen generates this value; no file sets it";
}

function describeSource(source) {
  if (!source) return "no source";
  return isWritten(source)
    ? `${source.layer}, ${source.file} line ${source.line}`
    : `${source.layer}, ${describeOrigin(source)}`;
}

/* The command that explains the value in a terminal. */
function makeExplainCommand(job, field, environment) {
  const chosen = environment === WITHOUT_OVERLAYS ? "" : ` -e ${quoteWord(environment)}`;
  const command = `jobgen explain ${[job.name, field].map(quoteWord).join(" ")}${chosen}`;
  return make(
    "p",
    { class: "blame-command" },
    make("code", {}, command),
    makeCopyButton("Copy", "Copy the command", command),
  );
}

/* Quote a word for a shell. */
function quoteWord(word) {
  return /^[\w./:@%+=-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/* A button that copies a text, and says so. */
function makeCopyButton(label, name, text) {
  const button = make("button", { type: "button", class: "quiet copy", "aria-label": name }, label);
  button.addEventListener("click", () =>
    copyText(text).then(
      () => {
        show(button, "Copied");
        announce("Copied");
        setTimeout(() => show(button, label), 1500);
      },
      () => announce("The browser forbids copying"),
    ),
  );
  return button;
}

/* Mark the lines of the spec that a value comes from. */
function markSpec(numbers) {
  document.querySelectorAll(".is-source").forEach((each) => each.classList.remove("is-source"));
  for (const number of numbers) document.querySelector(`[data-spec="${Number(number)}"]`)?.classList.add("is-source");
}

/* The path of the field in a line, as `jobgen explain` takes it; none in objects after the first one. */
function findField(texts, index) {
  const end = texts.indexOf("---");
  if (end >= 0 && index >= end) return "";
  return formatPath(listPaths(texts.slice(0, index + 1))[index]);
}

/* The path of the field that each line of a YAML document writes. */
function listPaths(texts) {
  const stack = [];
  const popWhile = (test) => {
    while (stack.length && test(stack[stack.length - 1])) stack.pop();
  };
  let textIndent = -1;
  let last = [];
  return texts.map((text) => {
    let indent = text.search(/\S/);
    let rest = text.trim();
    if (textIndent >= 0 && (indent < 0 || indent > textIndent)) return last;
    while (rest === "-" || rest.startsWith("- ")) {
      const at = indent;
      popWhile((level) => level.indent > at);
      const top = stack[stack.length - 1];
      if (top && top.indent === indent && top.isItem) top.step++;
      else stack.push({ indent, step: 0, isItem: true });
      rest = rest.slice(2);
      indent += 2;
    }
    const match = MAPPING_KEY.exec(rest);
    if (match) {
      popWhile((level) => level.indent >= indent);
      stack.push({ indent, step: unquote(match[2]) });
    }
    const value = match ? match[3] || "" : rest;
    textIndent = /^[|>]/.test(value) ? indent - (match ? 0 : 2) : -1;
    last = stack.map((level) => level.step);
    return last;
  });
}

function unquote(key) {
  if (key.startsWith("'")) return key.slice(1, -1).replaceAll("''", "'");
  try {
    return key.startsWith('"') ? JSON.parse(key) : key;
  } catch {
    return key;
  }
}

/* `spec.containers[0].image`; a JSON pointer if a key has other characters. */
function formatPath(steps) {
  if (steps.every((step) => typeof step === "number" || /^[A-Za-z_][\w-]*$/.test(step)))
    return steps.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("").slice(1);
  return steps.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
