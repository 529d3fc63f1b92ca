// Bundles the extension into one file, so that the package has no node_modules; with --tests also each test.
import { copyFile, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const shared = { bundle: true, platform: "node", target: "node20", format: "cjs", external: ["vscode"], logLevel: "warning" };

/** Writes the licenses of the packages that are part of the bundle, which they ask for. */
async function writeNotices(inputs) {
  const names = inputs.map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean);
  const notices = [...new Set(names)].sort().map(async (name) => {
    const license = (await readdir(`node_modules/${name}`)).find((file) => /^licen[cs]e/i.test(file));
    if (license === undefined) {
      throw new Error(`the package ${name} has no license file`);
    }
    return `# ${name}\n\n${await readFile(`node_modules/${name}/${license}`, "utf8")}`;
  });
  await writeFile("dist/NOTICES.txt", (await Promise.all(notices)).join("\n\n"));
}

const built = await build({
  ...shared,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  minify: process.argv.includes("--minify"),
  metafile: true,
});
await writeNotices(Object.keys(built.metafile.inputs));
await copyFile("../../LICENSE", "LICENSE");

if (process.argv.includes("--tests")) {
  const tests = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
  await rm("dist/test", { recursive: true, force: true });
  await build({ ...shared, entryPoints: tests.map((name) => `test/${name}`), outdir: "dist/test" });
}
