// Builds and tests a plugin in the folder it is called in:
//
//   node sdk/tool.mjs build     src/plugin.ts to NAME.wasm, a component without WASI
//   node sdk/tool.mjs test      checks the types, then runs test/*.test.ts with Node's own test runner; if one of them plays
//                               scenes in the real host, the component is built first, unless it is that of these sources
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const sdk = dirname(fileURLToPath(import.meta.url));
const out = "build";
/** The bundle that a component is made of, and that of the component that is there. */
const bundled = join(out, "stdin.js");
const made = join(out, "made.js");

/** A package that `npm install` brings; said in one line if it did not. */
async function load(name) {
  try {
    return await import(name);
  } catch (error) {
    console.error(`${name} is missing or broken (${error.code ?? error}): run \`npm install\` here`);
    process.exit(2);
  }
}

async function bundle(options) {
  const esbuild = await load("esbuild");
  const common = { bundle: true, format: "esm", target: "es2022", outdir: out, logLevel: "warning" };
  return esbuild.build({ ...common, ...options });
}

const component = () => `${JSON.parse(readFileSync("package.json", "utf8")).name}.wasm`;

async function build() {
  await bundleComponent();
  await componentizeBundle();
}

async function bundleComponent() {
  const contents =
    `import plugin from ${JSON.stringify(resolve("src/plugin.ts"))};\n` +
    `import { handlerOf } from ${JSON.stringify(join(sdk, "src/component.ts"))};\n` +
    `export const handler = handlerOf(plugin);\n`;
  const stdin = { contents, resolveDir: process.cwd(), sourcefile: "component.ts" };
  await bundle({ stdin, external: ["pi-graft:*"], platform: "neutral" });
}

async function componentizeBundle() {
  const { componentize } = await load("@bytecodealliance/componentize-js");
  // Every feature that would need WASI is off: the host has none.
  const disableFeatures = ["random", "stdio", "clocks", "http", "fetch-event"];
  const witPath = [join(sdk, "wit"), join(sdk, "../wit")].find(existsSync);
  const { component: bytes } = await componentize({ sourcePath: bundled, witPath, worldName: "plugin", disableFeatures });
  // Beside first, then renamed over: a daemon may have the old one in use, and a build may be killed.
  const whole = join(out, component());
  writeFileSync(whole, bytes);
  renameSync(whole, component());
  copyFileSync(bundled, made);
  console.log(`${component()}: ${bytes.length} bytes`);
}

/** Half a minute is spared where nothing has changed. */
async function buildIfChanged() {
  await bundleComponent();
  const isMade = existsSync(component()) && existsSync(made) && readFileSync(made).equals(readFileSync(bundled));
  if (!isMade) await componentizeBundle();
}

async function test() {
  types();
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  rmSync(join(out, "test"), { recursive: true, force: true });
  mkdirSync(join(out, "test"), { recursive: true });
  const entryPoints = tests.map((name) => join("test", name));
  const options = { entryPoints, outdir: join(out, "test"), platform: "node", outExtension: { ".js": ".mjs" }, metafile: true };
  const { metafile } = await bundle(options);
  if (Object.keys(metafile.inputs).some((input) => /\bsrc\/scene\.ts$/.test(input))) await buildIfChanged();
  run(process.execPath, ["--test", ...tests.map((name) => join(out, "test", name.replace(/ts$/, "mjs")))]);
}

function types() {
  const tsc = createRequire(join(process.cwd(), "package.json")).resolve("typescript/package.json");
  run(process.execPath, [join(dirname(tsc), "bin/tsc"), "--noEmit"]);
}

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

const commands = { build, test };
const command = commands[process.argv[2]];
if (command === undefined) {
  console.error(`usage: node tool.mjs ${Object.keys(commands).join("|")}`);
  process.exit(2);
}
await command();
