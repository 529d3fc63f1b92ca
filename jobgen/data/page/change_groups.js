/* Equal changes as one card: their fields before and after, the lines that cause them, and the objects. */

const MAX_FIELDS = 40;
const MAX_MEMBERS = 100;
const MAX_LINES = 3;
const MAX_NAMES = 4;

/* A card of a group; `members` are those of its changes that pass the filters. Its body is drawn when it opens. */
function makeGroup(group, members, mayOpen) {
  const first = members[0];
  const title = members.length === 1 ? nameChange(first) : count(members.length, first.kind);
  const ordered = [...members].sort((one, other) => one.environment - other.environment);
  const environments = [...new Set(ordered.map((change) => change.env))].filter(Boolean);
  const where = environments.length ? ` in ${joinNames(environments, 4)}` : "";
  const total = members.length < group.changes.length ? ` of ${formatNumber(group.changes.length)}` : "";
  const difference = sumMembers(members, "gpusAfter") - sumMembers(members, "gpusBefore");
  const card = makeLazyDetails(
    { class: "group", open: mayOpen && effectOrder(group.effect) <= 2 && group.fields.length <= 12 },
    [
      make("span", { class: "group-effects" }, group.effects.map((effect) => makeEffect(effect, group.effects.length > 1))),
      make(
        "span",
        { class: "group-title" },
        make(
          "span",
          { class: "group-name" },
          make("b", {}, title),
          make("span", { class: "hint" }, `${total} ${group.action}${where}`),
        ),
        members.length > 1 ? make("span", { class: "group-objects" }, nameMembers(members)) : null,
        group.now ? make("span", { class: "group-parts" }, makeMessage(describeParts(group, members))) : null,
      ),
      difference ? make("span", { class: "group-gpus" }, formatGpus(difference), makeWhen(group)) : null,
    ],
    () => makeGroupBody(group, members),
  );
  card.showMember = (key) => showMember(card, members, key);
  return card;
}

function nameChange(change) {
  return `${change.kind} ${change.namespace ? `${change.namespace}/` : ""}${change.name}`;
}

/* "bert, vit and 3 more": each name once, whatever its environments and namespaces are. */
function nameMembers(members) {
  return joinNames([...new Set(members.map((change) => change.name))], MAX_NAMES);
}

function formatGpus(difference) {
  return `${formatChange(difference)} ${Math.abs(difference) === 1 ? "GPU" : "GPUs"}`;
}

/* When a change of GPUs applies, if it is not at once. */
function makeWhen({ amounts }) {
  return amounts === "later" ? make("span", { class: "hint" }, " next run") : null;
}

/* "dev, prod and 3 more". */
function joinNames(names, limit) {
  if (names.length <= limit) return names.join(", ");
  return `${names.slice(0, limit).join(", ")} and ${formatNumber(names.length - limit)} more`;
}

function makeGroupBody(group, members) {
  const fields = group.fields.length
    ? makeShortList({ class: "fields" }, group.fields, MAX_FIELDS, (field) => makeField(field, group, members))
    : null;
  return make(
    "div",
    { class: "group-body" },
    makeReason(group),
    makeResources(group, members),
    fields,
    group.hidden
      ? make("p", { class: "hint" }, `${count(group.hidden, "more field")} changed; jobgen diff --format json lists all.`)
      : null,
    makeMembers(members),
  );
}

/* Why the change has its effect; the head says what is applied now and what the next run uses. */
function makeReason({ why, now }) {
  return why && !now ? make("p", {}, makeMessage(why)) : null;
}

function describeParts({ now, later, amounts }, members) {
  const difference = sumMembers(members, "gpusAfter") - sumMembers(members, "gpusBefore");
  const scaled = amounts === "now" && difference ? `: ${formatGpus(difference)}` : "";
  return `${now.replace("scales in place", `scales in place${scaled}`)}; ${later}`;
}

function sumMembers(members, name) {
  return members.reduce((so, change) => so + change[name], 0);
}

/* GPUs, CPUs and memory of the objects that change. */
function makeResources(group, members) {
  const sums = makeAmounts(Object.fromEntries(AMOUNTS.map((name) => [name, sumMembers(members, name)])));
  return sums.length ? make("p", { class: "resources" }, sums, group.amounts === "later" ? " from the next run on" : null) : null;
}

const AMOUNTS = ["gpus", "cpu", "memory"].flatMap((name) => [`${name}Before`, `${name}After`]);

/* The amounts that change; lines break between them, and not within one. */
function makeAmounts(row, names = ["gpus", "cpu", "memory"]) {
  const labels = { gpus: "GPUs", cpu: "CPUs", memory: "memory" };
  return names
    .map((name) => [name, row[`${name}Before`], row[`${name}After`]])
    .filter(([, before, after]) => before !== after)
    .map(([name, before, after], index) => [
      index ? ", " : null,
      make("span", { class: "amount" }, `${labels[name]} ${formatAmount(name, before)} → ${formatAmount(name, after)}`),
    ]);
}

function makeField(field, group, members) {
  const isOther = group.effects.length > 1 || group.effects[0] !== field.effect;
  const value = (name, label, text) =>
    make("code", { class: name }, make("span", { class: "hidden-text" }, label), text === "" ? "not set" : text);
  return make(
    "li",
    { class: "field" },
    make("code", { class: "field-name" }, field.field),
    make(
      "div",
      { class: "field-values" },
      value("old", "before ", field.old),
      makeIcon("right"),
      value("new", "after ", field.new),
      isOther ? makeEffect(field.effect, group.effects.length > 1) : null,
    ),
    isOther && field.why ? make("p", { class: "hint" }, makeMessage(field.why)) : null,
    makeLines(field, members),
  );
}

/* The lines that cause a change, then those that set the old value elsewhere. */
function makeLines(field, members) {
  const causes = countLines(field.causes, members);
  const was = countLines(field.was, members);
  const place = ({ line }) => `${line.file}:${line.line}`;
  const old = new Map(was.map((each) => [place(each), each]));
  const known = new Set(causes.map(place));
  const rows = [...causes, ...was.filter((each) => !known.has(place(each)))];
  if (!rows.length) return null;
  return makeShortList({ class: "lines" }, rows, MAX_LINES, (each) => {
    const before = causes.includes(each) && old.get(place(each));
    return make(
      "li",
      { class: "finding-more" },
      make("span", {}, causes.includes(each) ? "" : "was ", makePlace(each.line.side, each.line.file, each.line.line)),
      before ? makeBefore(before.line) : null,
      make("span", {}, each.line.layer),
      causes.length > 1 ? make("span", {}, count(each.number, "object")) : null,
    );
  });
}

/* Lines with the number of their objects among some, the most first. */
function countLines(lines, members) {
  const wanted = new Set(members);
  return [...lines]
    .map(([line, changes]) => ({ line, number: changes.filter((change) => wanted.has(change)).length }))
    .filter(({ number }) => number)
    .sort((one, other) => other.number - one.number);
}

/* A link to a line as it was before. */
function makeBefore({ side, file, line }) {
  const address = safeAddress(side.addressOf(file, line));
  return address ? make("a", { class: "place", href: address, rel: "noreferrer", target: "_blank" }, "before") : null;
}

function makeMembers(members) {
  if (members.length === 1) return make("ul", { class: "members" }, makeMember(members[0]));
  const makeList = () => makeShortList({ class: "members" }, members, MAX_MEMBERS, makeMember);
  if (members.length <= 3) return makeList();
  return makeLazyDetails({ class: "alike all-members" }, `All ${formatNumber(members.length)} objects`, makeList);
}

function makeMember(change) {
  const source = change.source && `of ${change.source}`;
  const kind = change.namespace ? `${change.kind} in ${change.namespace}` : change.kind;
  const facts = [kind, change.env, source].filter(Boolean);
  return make(
    "li",
    { "data-key": change.key },
    make(
      "span",
      {},
      make("b", {}, makeChangeLink(change)),
      make("span", { class: "hint" }, ` ${facts.join(" · ")}${change.was ? `, replaces ${change.was}` : ""}`),
    ),
    make("span", {}, makeAmounts(change, ["gpus"])),
    makePlace(change.side, change.file, change.line),
  );
}

/* Show one object of a card, and mark it. */
function showMember(card, members, key) {
  const all = card.querySelector(".all-members");
  if (all) {
    all.open = true;
    all.draw();
  }
  const find = () => [...card.querySelectorAll("[data-key]")].find((item) => item.dataset.key === key);
  if (!find()) card.querySelector(".members .show-more")?.click();
  find()?.classList.add("is-target");
}
