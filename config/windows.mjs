#!/usr/bin/env node
// Writes windows.tsv anew, the facts of every chat model that a released Pi knows by itself:
//
//   PI_DIR=…/node_modules/@earendil-works/pi-coding-agent node config/windows.mjs > config/windows.tsv
//
// Needs the Node that Pi needs (`tests/oracle/setup.sh` installs both). Only facts are taken: names, sizes, prices.
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const pi = resolve(process.env.PI_DIR ?? "");
const ai = [join(pi, "node_modules/@earendil-works/pi-ai"), join(pi, "../pi-ai")].find(existsSync);
const load = (path) => import(pathToFileURL(join(ai, path)).href);
const { builtinProviders, getBuiltinModelDataGeneratedAt } = await load("dist/providers/all.js");
const version = JSON.parse(readFileSync(join(pi, "package.json"), "utf8")).version;
const date = new Date(getBuiltinModelDataGeneratedAt()).toISOString().slice(0, 10);

const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const rates = (cost) => [cost.input, cost.output, cost.cacheRead, cost.cacheWrite];
const tier = (t) => [t.inputTokensAbove, ...rates(t)].join("/");
const row = (m) => {
	const tiers = (m.cost.tiers ?? []).map(tier).join(";");
	const fields = [m.id, m.contextWindow, m.maxTokens, ...rates(m.cost), ...(tiers ? [tiers] : [])];
	return fields.join("\t");
};

const lines = [
	`# ${date}: the models of Pi ${version}. Made by windows.mjs; do not edit.`,
	"# A provider, then its models: id, context window, most output (tokens); dollars for a million tokens of input, output,",
	"# cache read, cache write; and, where more input costs more, tokens/input/output/cache read/cache write, joined by `;`.",
];
for (const provider of builtinProviders().sort((a, b) => byBytes(a.id, b.id))) {
	const models = provider.getModels().filter((m) => m.contextWindow > 0);
	if (models.length === 0) continue;
	lines.push(`[${provider.id}]`, ...models.sort((a, b) => byBytes(a.id, b.id)).map(row));
}
console.log(lines.join("\n"));
