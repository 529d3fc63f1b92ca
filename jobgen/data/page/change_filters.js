/* The list of changes: its filters by effect, environment and text, the keyboard, and links to one change. */

const MAX_GROUPS = 60;
const MAX_OPEN = 6;

class ChangeList {
  constructor(model, route) {
    this.model = model;
    this.query = { ...route.query };
    this.key = route.parts[1] || "";
    this.cards = [];
    this.active = -1;
    this.tiles = make("div", { class: "effects", role: "group", "aria-label": "Effects" });
    this.place = make("div", { class: "groups" });
    this.shown = make("span", { class: "hint" });
    this.clear = make("button", { type: "button", class: "quiet", onClick: () => this.reset() }, "Clear");
    this.element = make(
      "section",
      { class: "change-list", "aria-label": "Changes" },
      make("h2", {}, "Changes"),
      this.tiles,
      this.makeFilters(),
      this.place,
    );
    this.draw();
  }

  makeFilters() {
    this.search = make("input", {
      type: "search",
      class: "search",
      placeholder: "Search objects, fields, files",
      "aria-label": "Search objects, fields, files",
      autocomplete: "off",
      spellcheck: "false",
      onInput: () => this.change("q", this.search.value.trim()),
    });
    this.search.value = this.query.q || "";
    const { changes } = this.model.changes;
    const environments = orderByCount(changes, (change) => change.env).filter(([name]) => name);
    this.select =
      environments.length > 1
        ? makeSelect("Environment", "env", environments, this.query, (name, value) => this.change(name, value))
        : null;
    return make("div", { class: "filters", role: "search" }, this.search, this.select, this.clear, this.shown);
  }

  hasFilters() {
    return ["effect", "env", "q"].some((name) => this.query[name]) || Boolean(this.key);
  }

  change(name, value) {
    this.query[name] = value;
    this.key = "";
    replaceRoute(["changes"], this.query);
    this.draw();
  }

  reset() {
    this.query = {};
    this.key = "";
    this.search.value = "";
    if (this.select) this.select.firstElementChild.value = "";
    replaceRoute(["changes"]);
    this.draw();
  }

  /* The changes that pass the filters by environment and text; the tiles count these. */
  listChanges() {
    const words = (this.query.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    return this.model.changes.changes.filter(
      (change) =>
        (!this.query.env || change.env === this.query.env) &&
        words.every((word) => searchChange(change).includes(word)),
    );
  }

  draw() {
    const found = this.listChanges();
    const wanted = new Set(found.filter((change) => !this.query.effect || change.effects.includes(this.query.effect)));
    const groups = this.model.changes.groups
      .map((group) => ({ group, members: group.changes.filter((change) => wanted.has(change)) }))
      .filter(({ members }) => members.length)
      .sort((one, other) => effectOrder(one.group.effect) - effectOrder(other.group.effect));
    this.groups = groups;
    this.active = -1;
    this.cards = [];
    this.select?.classList.toggle("is-set", Boolean(this.query.env));
    this.clear.hidden = !this.hasFilters();
    const { length } = this.model.changes.changes;
    show(this.shown, wanted.size < length ? `${formatNumber(wanted.size)} of ${count(length, "change")}` : "");
    show(this.tiles, makeTiles(found, this.query.effect, (effect) => this.change("effect", effect)));
    show(this.place, groups.length ? null : this.makeNothing());
    this.drawMore(MAX_GROUPS);
    if (this.search === document.activeElement) announce(count(wanted.size, "change"));
  }

  makeNothing() {
    const { head, changes } = this.model;
    if (changes.changes.length) return makeEmpty("No change matches these filters");
    return makeEmpty("No object changes", `${count(head.unchanged, "object")} unchanged`);
  }

  /* Draw the next cards, and a button for the others. */
  drawMore(limit) {
    const start = this.cards.length;
    const next = this.groups.slice(start, start + limit);
    this.cards.push(
      ...next.map(({ group, members }, index) => makeGroup(group, members, start + index < MAX_OPEN)),
    );
    append(this.place, this.cards.slice(start));
    const left = this.groups.length - this.cards.length;
    if (!left) return;
    const showMore = () => {
      button.remove();
      this.drawMore(MAX_GROUPS * 5);
    };
    const text = `Show more; ${count(left, "group")} of changes left`;
    const button = make("button", { type: "button", class: "show-more", onClick: showMore }, text);
    this.place.append(button);
  }

  /* Open the change that the address names. */
  reveal() {
    if (!this.key) return;
    const at = this.groups.findIndex(({ members }) => members.some((change) => change.key === this.key));
    if (at < 0) {
      this.place.prepend(make("p", { class: "change-notes tone-warn" }, "This page has no change of ", make("code", {}, this.key)));
      return;
    }
    while (this.cards.length <= at) {
      this.place.querySelector(":scope > .show-more").remove();
      this.drawMore(MAX_GROUPS * 5);
    }
    const card = this.cards[at];
    card.open = true;
    card.draw();
    card.showMember(this.key);
    this.active = at;
    card.classList.add("is-active");
    (card.querySelector(".is-target") || card).scrollIntoView({ block: "center" });
    card.querySelector("summary").focus({ preventScroll: true });
  }

  /* j and k go from change to change. */
  move(step) {
    if (!this.cards.length) return;
    this.cards[this.active]?.classList.remove("is-active");
    this.active = Math.max(0, Math.min(this.cards.length - 1, this.active + step));
    this.cards[this.active].classList.add("is-active");
    this.cards[this.active].querySelector("summary").focus();
  }

  open() {
    this.cards[this.active]?.querySelector("summary").click();
  }

  /* Paper shows every group, opened. */
  print(isPrinting) {
    if (isPrinting) {
      this.drawMore(Infinity);
      this.place.querySelector(":scope > .show-more")?.remove();
      this.closed = this.cards.filter((card) => !card.open);
      for (const card of this.closed) card.draw();
    }
    for (const card of this.closed || []) card.open = isPrinting;
  }
}

/* The text that the filter searches, in lower case. */
function searchChange(change) {
  if (change.text === undefined) {
    const fields = change.group.fields.flatMap((field) => [
      field.field,
      field.old,
      field.new,
      ...[...field.causes].filter(([, found]) => found.includes(change)).map(([cause]) => cause.file),
    ]);
    const own = [change.kind, change.namespace, change.name, change.env, ...change.effects, change.action, change.file];
    change.text = [...own, change.source, change.was, change.why, ...fields].join("\n").toLowerCase();
  }
  return change.text;
}

/* How many objects have each effect; a click keeps only these. */
function makeTiles(changes, chosen, choose) {
  const effects = changes.flatMap((change) => change.effects);
  const counts = new Map(orderByCount(effects, (effect) => effect));
  const shown = EFFECTS.filter(([effect]) => effect !== "ignored" || counts.has(effect) || chosen === effect);
  return shown.map(([effect, { label, icon, tone, text }]) => {
    const number = counts.get(effect) || 0;
    return make(
      "button",
      {
        type: "button",
        class: `tile-button ${number ? "" : "is-zero"}`,
        title: text,
        "aria-pressed": String(chosen === effect),
        disabled: number || chosen === effect ? null : true,
        onClick: () => choose(chosen === effect ? "" : effect),
      },
      make("span", { class: `total-value ${number ? `tone-text-${tone}` : ""}` }, formatNumber(number)),
      make("span", { class: "tile-text" }, makeIcon(icon), label),
    );
  });
}
