// How long the real Pi takes on a session: medians in milliseconds, and the peak of its memory.
// PI_DIR=… node bench.mjs FILE…      One JSON object per FILE on stdout.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const load = (rel) => import(pathToFileURL(join(process.env.PI_DIR, rel)).href);
const { SessionManager } = await load("dist/core/session-manager.js");
const { prepareCompaction } = await load("dist/core/compaction/index.js");

const settings = { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 };
const timed = (work, into) => {
	const start = performance.now();
	const value = work();
	into.push(performance.now() - start);
	return value;
};
const median = (times) => Number(times.sort((a, b) => a - b)[times.length >> 1].toFixed(3));

for (const file of process.argv.slice(2)) {
	const [open, context, plan] = [[], [], []];
	for (let round = 0; round < 5; round++) {
		const manager = timed(() => SessionManager.open(file), open);
		timed(() => manager.buildSessionContext(), context);
		timed(() => prepareCompaction(manager.getBranch(), settings), plan);
	}
	const peakMiB = Math.round(process.resourceUsage().maxRSS / 1024);
	console.log(JSON.stringify({ file, openMs: median(open), contextMs: median(context), planMs: median(plan), peakMiB }));
}
