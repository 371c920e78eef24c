// What the real Pi does with a session file, step by step, each step in a sandbox of its own: what throws, what is lost.
// PI_DIR=… node probe.mjs      One path a line on stdin, one JSON object a line on stdout.
//
// { open, changed, tokens, plan, send, chat, tree, footer, name, list: "ok" or what went wrong; shows: what the model is given }
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const load = (rel) => import(pathToFileURL(join(process.env.PI_DIR, rel)).href);
const components = (name) => load(`dist/modes/interactive/components/${name}.js`);
const { SessionManager, findMostRecentSession } = await load("dist/core/session-manager.js");
const { convertToLlm, ...marks } = await load("dist/core/messages.js");
const { prepareCompaction, estimateProjectedContextTokens } = await load("dist/core/compaction/index.js");
const { convertMessages } = await load("../pi-ai/dist/api/openai-completions.js");
const { initTheme } = await load("dist/modes/interactive/theme/theme.js");
const { FooterComponent } = await components("footer");
const { TreeSelectorComponent } = await components("tree-selector");
const { AssistantMessageComponent } = await components("assistant-message");
const { CompactionSummaryMessageComponent } = await components("compaction-summary-message");
const { BranchSummaryMessageComponent } = await components("branch-summary-message");
const { CustomMessageComponent } = await components("custom-message");
initTheme("dark");

const model = { provider: "p", id: "m", api: "openai-completions", input: ["text"], reasoning: false, contextWindow: 100000 };
const settings = { enabled: true, reserveTokens: 16384, keepRecentTokens: 1 };

/** Pi follows parents without looking whether it goes in a circle: memory fills up, and then it dies. */
const circles = (m) => {
	const seen = new Set();
	for (let at = m.getEntry(m.getLeafId()); at; at = at.parentId ? m.getEntry(at.parentId) : undefined) {
		if (seen.has(at)) return true;
		seen.add(at);
	}
	return false;
};
const verdict = (work) => {
	try {
		const value = work();
		return value === undefined ? "ok" : value;
	} catch {
		return "throws";
	}
};
const component = (message) => {
	switch (message.role) {
		case "assistant":
			return new AssistantMessageComponent(message);
		case "compactionSummary":
			return new CompactionSummaryMessageComponent(message);
		case "branchSummary":
			return new BranchSummaryMessageComponent(message);
		case "custom":
			return message.display ? new CustomMessageComponent(message) : undefined;
	}
};
const text = (message) => {
	const content = message.content ?? message.tool_calls?.map((call) => `call ${call.id}`);
	const of = (part) => (typeof part === "string" ? part : (part?.text ?? part?.type ?? String(part)));
	const said = `${message.role}: ${Array.isArray(content) ? content.map(of).join(" ") : content}`;
	const plain = said.replace(marks.COMPACTION_SUMMARY_PREFIX, "(summary) ").replace(marks.BRANCH_SUMMARY_PREFIX, "(branch) ");
	return plain.replace(/\s*<\/summary>/, "");
};
const sent = (projection) => convertMessages(model, { messages: convertToLlm(projection.messages) }, {}, {});

const messagesIn = (file) => {
	const parsed = (line) => verdict(() => JSON.parse(line)?.type);
	return file.split("\n").filter((line) => parsed(line) === "message").length;
};

async function probe(path) {
	const dir = mkdtempSync(join(tmpdir(), "pi-probe-"));
	const file = join(dir, "s.jsonl");
	try {
		copyFileSync(path, file);
		const before = readFileSync(file);
		const infos = [...(await SessionManager.list(dir, dir)), ...(await SessionManager.listAll(dir))];
		const isWhole = infos.every((info) => info.messageCount === messagesIn(before.toString()));
		// What --continue looks for reads no more than the beginning of a file.
		const found = findMostRecentSession(dir) ? "ok" : "passed-over";
		const out = { open: "ok", list: infos.length === 0 ? "missing" : isWhole ? found : "partly" };
		let m;
		out.open = verdict(() => void (m = SessionManager.open(file)));
		if (!m) return out;
		const after = readFileSync(file);
		out.changed = after.equals(before) ? "no" : after.subarray(0, before.length).equals(before) ? "ended" : "rewritten";
		if (circles(m)) return { ...out, open: "hangs" };
		out.leaf = m.getLeafId() ? "ok" : m.getEntries().length ? "none" : "ok";
		let projection;
		out.context = verdict(() => void (projection = m.buildSessionProjection()));
		const tokens = () => estimateProjectedContextTokens(projection, m.getBranch()).tokens;
		out.tokens = verdict(() => (Number.isFinite(tokens()) ? undefined : "NaN"));
		out.plan = verdict(() => void prepareCompaction(m.getBranch(), settings));
		out.send = verdict(() => void sent(projection));
		out.chat = verdict(() => projection.messages.forEach((message) => void component(message)?.render(80)));
		out.tree = verdict(() => {
			const tree = new TreeSelectorComponent(m.getTree(), m.getLeafId(), 40, () => {}, () => {}, () => {}, undefined, "all");
			tree.render(120);
		});
		out.footer = verdict(() => void new FooterComponent({ sessionManager: m, getContextUsage: () => undefined, state: {} }, {}).getSessionStats());
		out.name = verdict(() => void m.getSessionName());
		if (out.list === "ok" && infos.some((info) => info.name !== m.getSessionName())) out.list = "unnamed";
		const shown = verdict(() => sent(projection).map(text));
		out.shows = shown === "throws" ? projection?.messages.map((message) => message?.role ?? "?") ?? [] : shown;
		return out;
	} finally {
		rmSync(dir, { recursive: true, force: true });
	}
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await probe(line)));
