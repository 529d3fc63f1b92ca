/* The model of a pull request: the tables of the data, joined. Each side has its own revision for links. */

function joinChanges(model, data, files) {
  const named = (row) => ({ ...row, file: files[row.file] || "", env: model.environments[row.environment] || "" });
  const found = (name) => data.table(name).map((row) => joinFinding(model, files, row));
  const sides = { old: makeSide(data, files, true, model.rules), new: makeSide(data, files, false, model.rules) };
  const changes = data.table("changes").map((row) => {
    const change = { ...named(row), side: row.action === "removed" ? sides.old : sides.new };
    const key = [change.env, change.kind, change.namespace, change.name].join("/");
    return { ...change, key, effects: listEffects(row) };
  });
  const groups = data.table("groups").map((row) => ({ ...row, effects: listEffects(row), changes: [], fields: [] }));
  for (const change of changes) {
    change.group = groups[change.group];
    change.group.changes.push(change);
  }
  const causes = joinCauses(data, named, sides, changes, groups);
  return {
    changes,
    groups,
    sides,
    causes,
    dangers: data.table("dangers").map((row) => ({ ...row, change: changes[row.change] || null })),
    totals: data.table("totals").map(named),
    added: found("findings"),
    fixed: found("fixed"),
    errors: { old: found("oldErrors"), new: found("newErrors") },
    moves: data.table("queueMoves").map(named),
    quotas: data.table("quotas").map(named),
    objects: data.table("queueObjects").map(named),
    notes: data.table("notes").map(named),
  };
}

/* All effects of a change or a group. */
function listEffects({ effect, effects }) {
  return effects ? effects.split(" ") : [effect];
}

/* One side, as far as links need it: a file that its commit does not have, or not like this, has no address. */
function makeSide(data, files, isOld, rules) {
  const { head } = data;
  const name = isOld ? "base" : "head";
  const rows = data.table("unlinked").filter((row) => Boolean(row.old) === isOld);
  const unlinked = new Set(rows.map((row) => files[row.file]));
  const place = { link: head.link, revision: head[`${name}Revision`], prefix: head[`${name}Prefix`] };
  return {
    name: head[name] || "",
    rules,
    changedFiles: new Set([...unlinked].filter((file) => !file.startsWith(BUILT_IN))),
    addressOf: (file, line) => makeAddress(place, unlinked, file, line),
  };
}

/* Lines that set changed values: `caused` are the changes of a line, `causes` and `was` the lines of a field. */
function joinCauses(data, named, sides, changes, groups) {
  const causes = data
    .table("causes")
    .map((row) => ({ ...named(row), side: row.old ? sides.old : sides.new, caused: new Set() }));
  const fields = data.table("fields").map((row) => ({ ...row, causes: new Map(), was: new Map() }));
  for (const field of fields) groups[field.group].fields.push(field);
  const add = (lines, line, change) => {
    if (!lines.has(line)) lines.set(line, []);
    lines.get(line).push(change);
  };
  for (const row of data.table("causedBy")) {
    causes[row.cause].caused.add(changes[row.change]);
    add(fields[row.field].causes, causes[row.cause], changes[row.change]);
  }
  for (const row of data.table("wasSetBy"))
    add(fields[row.field].was, causes[row.cause], changes[row.change]);
  return causes.filter((cause) => cause.caused.size);
}
