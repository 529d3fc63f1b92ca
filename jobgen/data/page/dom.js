/* Elements made of data. Text from data is only ever a text node: nothing here parses HTML. */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/* Attributes whose value the browser would run or parse. They are never set, whatever a caller passes. */
const FORBIDDEN_ATTRIBUTE = /^(on|style$|src|formaction$|xlink:href$)/i;

/* Make an HTML element: `make("a", {class: "link", href: url, onClick: open}, "text", child)`. */
function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/* Make an SVG element. */
function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (!FORBIDDEN_ATTRIBUTE.test(name)) element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/* Append children; strings and numbers become text nodes, lists are flattened, nothing is skipped but null. */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/* Replace all children of an element. */
function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/* Return the address if it is one of the web, else nothing: data must not become `javascript:`. */
function safeAddress(address) {
  if (!address) return null;
  try {
    const { protocol } = new URL(address);
    return protocol === "https:" || protocol === "http:" ? address : null;
  } catch {
    return null;
  }
}

/* A place in a file: a link to Git if the page knows the address, else plain text. */
function makePlace(model, file, line, column, revision) {
  if (!file) return null;
  const text = [file, line, column].filter(Boolean).join(":");
  const address = safeAddress(model.addressOf(file, line, revision));
  if (address) return make("a", { class: "place", href: address, rel: "noreferrer", target: "_blank" }, text);
  const isChanged = model.changedFiles.has(file) && !revision;
  return make("span", { class: "place" }, text, isChanged && make("span", { class: "uncommitted" }, "not committed"));
}

/* A sprite of the page: `<svg><use href="#icon-…">`; the name is never data. */
function makeIcon(name, label) {
  const icon = draw("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": label ? null : "true" });
  if (label) {
    icon.setAttribute("role", "img");
    icon.setAttribute("aria-label", label);
  }
  icon.appendChild(draw("path", { d: ICONS[name] }));
  return icon;
}

/* Shapes of 16 by 16 units, drawn as lines. */
const ICONS = {
  check: "M3 8.5l3.2 3L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  dash: "M4 8h8",
  pause: "M5.5 4v8M10.5 4v8",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0 -11M8 5v3.2l2 1.3",
  ban: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0 -11M4.2 4.2l7.6 7.6",
  alert: "M8 2.5l6 10.5h-12zM8 6.5v3M8 11.2v.3",
  info: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0 -11M8 7.5v3.5M8 5v.3",
  right: "M6 3.5L10.5 8L6 12.5",
  down: "M3.5 6L8 10.5L12.5 6",
  up: "M3.5 10L8 5.5L12.5 10",
  plus: "M8 3.5v9M3.5 8h9",
  restart: "M12.7 6.2a5 5 0 1 0 .2 3M13 2.8v3.6h-3.6",
  stop: "M4.5 4.5h7v7h-7z",
  play: "M5.5 3.8v8.4l6.5 -4.2z",
  edit: "M3 13l.6 -2.8l7 -7l2.2 2.2l-7 7z",
  contrast: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0 -11M8 2.8v10.4M10.2 3.2v9.6M12.2 4.6v6.8",
  out: "M6.5 4h5.5v5.5M12 4L4.5 11.5",
  bolt: "M9 2.5L4 9h3.5L7 13.5L12 7H8.5z",
};

/* A line for when there is nothing to show: what is missing, and what to do. */
function makeEmpty(title, hint, action) {
  return make(
    "div",
    { class: "empty" },
    make("p", { class: "empty-title" }, title),
    hint && make("p", {}, hint),
    action,
  );
}

/* "1 job", "2 jobs". */
function count(number, noun, plural) {
  return `${formatNumber(number)} ${number === 1 ? noun : plural || noun + "s"}`;
}

const NUMBER_FORMAT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

function formatNumber(number) {
  return NUMBER_FORMAT.format(number);
}

/* "+8", "−8", "±0", with the minus sign of typography. */
function formatChange(number) {
  if (number === 0) return "±0";
  return (number > 0 ? "+" : "−") + formatNumber(Math.abs(number));
}

/* Choose among a few values: a group of buttons of which one is pressed. */
function makeChoice(label, choices, selected, onChoose) {
  const buttons = choices.map(([value, text]) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(value === selected), onClick: () => onChoose(value) },
      text,
    ),
  );
  return make("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

/* A label of a severity: a word and a shape, not only a color. */
function makeSeverity(severity, text) {
  const shape = { error: "cross", warning: "alert", info: "info" }[severity] || "info";
  return make(
    "span",
    { class: `badge tone-${toneOf(severity)}` },
    makeIcon(shape),
    text === undefined ? severity : text,
  );
}

function toneOf(severity) {
  return { error: "bad", warning: "warn", info: "note" }[severity] || "note";
}
