// Run the search of the site without a browser: node site_search.js SITE QUERY... prints the addresses that it finds.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [site, ...queries] = process.argv.slice(2);
const folder = path.join(site, "assets/javascripts/workers");
const worker = path.join(folder, fs.readdirSync(folder).find((name) => /^search.*\.js$/.test(name)));
const waiting = [];
let listen;
globalThis.self = globalThis;
globalThis.location = { href: "http://site/assets/javascripts/workers/search.js" };
globalThis.addEventListener = (_, listener) => (listen = listener);
globalThis.importScripts = (...names) => {
  for (const name of names) {
    vm.runInThisContext(fs.readFileSync(path.join(folder, name.replace(/^.*\/lunr\//, "../lunr/")), "utf8"), name);
  }
};
globalThis.postMessage = (message) => waiting.shift()(message);
globalThis.exports = undefined;
vm.runInThisContext(fs.readFileSync(worker, "utf8"), worker);

const ask = (type, data) =>
  new Promise((done) => {
    waiting.push(done);
    listen({ data: { type, data } });
  });

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await ask(0, { ...index, options: { suggest: true } });
  const found = {};
  for (const query of queries) {
    const { data } = await ask(2, query);
    found[query] = data.items.map((item) => item[0].location);
  }
  process.stdout.write(JSON.stringify(found));
})();
