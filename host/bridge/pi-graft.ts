/**
 * The bridge of pi-graft: lets its daemon graft entries into the session that this Pi has open.
 *
 * Pi keeps its place in memory and never reads its session file again while it runs. So the daemon cannot append behind
 * its back: this extension tells it where Pi stands, asks it at Pi's own boundaries, and hands Pi the entries it answers
 * with, which Pi then appends itself. It speaks JSON lines over the daemon's Unix socket; PROTOCOL.md describes them.
 *
 * It never harms the Pi it runs in. Whatever goes wrong (no daemon, a slow or a broken one), a hook returns nothing at
 * all, and Pi does what it would have done without it. Each wait has a limit. Where no daemon is, nothing is registered
 * at Pi's boundaries, and all that is left is a look into a directory now and then.
 *
 * Nothing of a session is kept in variables of this module: Pi runs the factory below anew for each session and reload.
 */
import { existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";

/** The protocol's version, and the most bytes that a line of it may have. */
const PROTOCOL = 1;
const MOST_BYTES = 8 * 1024 * 1024;

/** How often, in milliseconds, a daemon is looked for: at most, at events; and by a timer. */
const LOOK_AT_MOST = 1000;
const LOOK_EVERY = 3000;
/** How often a move that no event tells of (a label, a shell command) is looked for while a daemon listens. */
const REPORT_EVERY = 1000;
/** How long Pi may wait for the farewell to be on its way. */
const FAREWELL = 100;
/** How long a hook waits at most, unless the daemon says less or more; and the most it may say. */
const LIMITS = { turnEndMs: [500, 10_000], settleMs: [500, 10_000], compactMs: [120_000, 900_000] } as const;

/** Entries that give no message and change none: behind them an answer still holds. */
const SILENT = new Set(["custom", "label", "model_change", "session_info", "thinking_level_change", "usage"]);
/** The entry with which every batch begins. */
const RECEIPT = "pi-graft.run";
/** Where Pi takes entries from extensions. */
const BOUNDARIES = ["turn_end", "agent_before_settle"] as const;
/** After these events the leaf may be another one, or Pi idle, or not. */
const MOVES = [
	"agent_end", "agent_start", "message_end", "message_start", "model_select", "session_compact",
	"session_compact_failed", "session_info_changed", "session_tree", "thinking_level_select", "tool_execution_end",
	"turn_start", "user_bash",
] as const;

// What is used of Pi's extension API.

type Json = Record<string, unknown>;
type Leaf = string | null;
type Stop = (() => void) | undefined | void;

interface Entry {
	type: string;
	parentId?: Leaf;
}
interface Sessions {
	getLeafId(): Leaf;
	getEntry(id: string): Entry | undefined;
	getSessionId(): string;
	getSessionFile(): string | undefined;
	getCwd(): string;
}
interface Context {
	sessionManager: Sessions;
	signal?: AbortSignal;
	mode?: string;
	isIdle(): boolean;
	hasPendingMessages(): boolean;
	compact(options: Json): void;
}
interface Event {
	reason?: string;
	message?: { role?: string; stopReason?: string };
}
interface Boundary extends Event {
	entries: unknown[];
	outcome?: string;
}
interface BeforeCompact extends Event {
	customInstructions?: string;
	signal?: AbortSignal;
}
interface Pi {
	// biome-ignore lint: the events differ in shape, and each handler names what it reads of its own
	on(event: string, handler: (event: any, ctx: Context) => unknown): Stop;
	appendEntry(customType: string, data?: unknown): void;
	sendMessage(message: Json, options: { triggerTurn: false }): void;
}

/** An entry that the daemon proposes, as Pi takes it. */
interface Draft extends Json {
	type: string;
}
/** A batch: its receipt, and what follows it. */
type Batch = Draft[];

/** Pi's entry point: once for each session, and again after a reload. */
export default function bridge(pi: Pi): void {
	let current: Bridge | undefined;
	pi.on("session_start", (event: Event, ctx) =>
		quietly(() => {
			current?.close();
			current = Bridge.of(pi, ctx, event.reason ?? "startup");
		}),
	);
	pi.on("session_shutdown", (event: Event) => {
		const last = current;
		current = undefined;
		return last?.leave(event.reason ?? "quit");
	});
	pi.on("input", () => quietly(() => current?.typed()));
	pi.on("agent_settled", () => quietly(() => current?.settled()));
	for (const name of MOVES) pi.on(name, (event: Event) => quietly(() => current?.moved(name, event)));
}

/** The bridge of one session. */
class Bridge {
	private readonly pi: Pi;
	private readonly ctx: Context;
	private readonly file: string;
	private readonly why: string;
	/** Daemons that were connected to, by their socket's path. */
	private readonly links = new Map<string, Link>();
	/** The daemon that serves this session. */
	private serving: Link | undefined;
	/** Sockets whose daemon does not want this session, or speaks another language: asked again when they are new. */
	private readonly refused = new Set<string>();
	/** How to unregister what is registered at Pi's boundaries. */
	private hooks: Stop[] = [];
	/** Whether a prompt is being prepared: Pi calls itself idle then. */
	private prompt: "none" | "typed" | "begun" = "none";
	/** The compaction that this bridge has started. */
	private own: { token: string; leaf: Leaf } | undefined;
	private looked = Number.NEGATIVE_INFINITY;
	private reporting: string | undefined;
	private written = false;
	private timer: NodeJS.Timeout | undefined;
	private closed = false;

	/** None for a session that is in memory only, or that another copy of this extension has. */
	static of(pi: Pi, ctx: Context, why: string): Bridge | undefined {
		const file = ctx.sessionManager.getSessionFile();
		if (!file || typeof process.getuid !== "function") return undefined;
		const bridge = new Bridge(pi, ctx, file, why);
		if (!claim(file, bridge)) return undefined;
		bridge.look();
		bridge.tick();
		return bridge;
	}

	constructor(pi: Pi, ctx: Context, file: string, why: string) {
		this.pi = pi;
		this.ctx = ctx;
		this.file = file;
		this.why = why;
	}

	/** Whether Pi still has this session open. A context that Pi has put away throws. */
	alive(): boolean {
		return !this.closed && quietly(() => this.ctx.isIdle()) !== undefined;
	}

	// Finding the daemon.

	/** Connects to every daemon that is not connected to, at most once a second. */
	private look(): void {
		const now = performance.now();
		if (this.serving || this.closed || now - this.looked < LOOK_AT_MOST) return;
		this.looked = now;
		// Pi makes the file at the first message; a daemon may not have wanted one that was not there.
		if (!this.written && existsSync(this.file)) {
			this.written = true;
			this.refused.clear();
		}
		for (const { path, identity } of sockets()) {
			if (!this.links.has(path) && !this.refused.has(identity)) this.open(path, identity);
		}
	}

	private open(path: string, identity: string): void {
		const link = new Link(path, {
			heard: (message) => this.heard(link, message),
			lost: (broken) => this.lost(link, identity, broken),
		});
		this.links.set(path, link);
		const session = { id: this.sessions.getSessionId(), file: this.file, cwd: this.sessions.getCwd() };
		const state = this.state();
		link.told = JSON.stringify(state);
		link.send({ v: PROTOCOL, bridge: "hello", pid: process.pid, session, ...state, why: this.why });
	}

	private lost(link: Link, identity: string, broken: boolean): void {
		if (this.links.get(link.path) === link) this.links.delete(link.path);
		if (broken) this.refused.add(identity);
		if (this.serving !== link) return;
		this.serving = undefined;
		this.unhook();
		// Another daemon may have this session now, also one that did not want it before.
		this.refused.clear();
		if (broken) this.refused.add(identity);
	}

	/** Looks and reports from time to time; never keeps Pi from exiting. */
	private tick(): void {
		this.timer = setTimeout(() => {
			if (!this.alive()) return this.close();
			quietly(() => (this.serving ? this.report("moved") : this.look()));
			this.tick();
		}, this.serving ? REPORT_EVERY : LOOK_EVERY);
		this.timer.unref();
	}

	// What the daemon says.

	private heard(link: Link, message: Json): void {
		if (isObject(message.welcome)) return this.welcomed(link, message.welcome);
		if (typeof message.error === "string") return link.close(true);
		if (typeof message.answer === "number") return link.answered(message.answer, message);
		const re = message["leaf?"];
		if (typeof re === "number") return void link.send({ ...this.state(), on: "asked", re });
		if (link !== this.serving) return;
		if (typeof message.push === "number") return this.pushed(link, message.push, message);
		if (typeof message.compact === "number") return this.compact(link, message.compact, message);
	}

	private welcomed(link: Link, welcome: Json): void {
		if (this.serving === link) return;
		if (welcome.v !== PROTOCOL || welcome.serves !== true || this.serving) return link.close(true);
		for (const name of Object.keys(LIMITS) as (keyof typeof LIMITS)[]) {
			const [usual, most] = LIMITS[name];
			const said = welcome[name];
			link.limits[name] = typeof said === "number" && said > 0 ? Math.min(said, most) : usual;
		}
		this.serving = link;
		this.hook();
		this.report("welcome");
	}

	/** Entries that come while Pi is idle: all of them in this tick, or none. */
	private pushed(link: Link, push: number, message: Json): void {
		const batches = batchesOf(message.entries);
		const pushable = batches?.flat().every((draft) => draft.type === "custom" || draft.type === "custom_message");
		const why = !batches?.length || !pushable ? "not such a batch" : this.unready(message.leaf);
		if (why) return void link.send({ pushed: push, ok: false, leaf: this.sessions.getLeafId(), why });
		const failure = problem(() => batches!.flat().forEach((draft) => this.append(draft)));
		const leaf = this.sessions.getLeafId();
		link.send(failure ? { pushed: push, ok: false, leaf, why: failure } : { pushed: push, ok: true, leaf });
	}

	private append(draft: Draft): void {
		if (draft.type === "custom") return this.pi.appendEntry(draft.customType as string, draft.data);
		const { customType, content, display, details } = draft;
		// Without this option the message would steer a running turn, or begin one.
		this.pi.sendMessage({ customType, content, display, details }, { triggerTurn: false });
	}

	/** Starts a compaction, known by its token when the hook is called. */
	private compact(link: Link, compact: number, message: Json): void {
		const { token, leaf } = message;
		const tell = (ok: boolean, why?: string) =>
			quietly(() => link.send({ pushed: compact, ok, leaf: this.sessions.getLeafId(), ...(why ? { why } : {}) }));
		const why = typeof token !== "string" || !token ? "no token" : this.own ? "compacting" : this.unready(leaf);
		if (why) return void tell(false, why);
		this.own = { token: token as string, leaf: leaf as Leaf };
		const end = (ok: boolean, why?: string) => {
			this.own = undefined;
			tell(ok, why);
		};
		const onError = (error: unknown) => end(false, textOf(error));
		const options = { customInstructions: token, onComplete: () => end(true), onError };
		const failure = problem(() => this.ctx.compact(options));
		if (failure) end(false, failure);
	}

	private unready(leaf: unknown): string | undefined {
		if (!this.idle()) return "not idle";
		return this.sessions.getLeafId() === leaf ? undefined : "the leaf is another";
	}

	// What Pi asks.

	/** Registered only while a daemon serves this session, so that Pi prepares nothing for us in vain. */
	private hook(): void {
		this.hooks = [
			...BOUNDARIES.map((at) => this.pi.on(at, (event: Boundary, ctx) => this.boundary(at, event, ctx))),
			this.pi.on("session_before_compact", (event: BeforeCompact) => this.beforeCompact(event)),
		];
	}

	private unhook(): void {
		for (const stop of this.hooks.splice(0)) quietly(() => stop?.());
	}

	/** The end of a turn or of a run: our entries behind those that others put there, or nothing. */
	private async boundary(at: (typeof BOUNDARIES)[number], event: Boundary, ctx: Context): Promise<unknown> {
		try {
			const link = this.serving;
			if (!link) return undefined;
			const stopReason = at === "turn_end" ? (event.message?.stopReason ?? null) : null;
			const outcome = event.outcome ?? null;
			const question = { at, leaf: this.sessions.getLeafId(), outcome, stopReason, others: event.entries };
			const limit = at === "turn_end" ? link.limits.turnEndMs : link.limits.settleMs;
			const answer = await link.ask(question, limit, ctx.signal);
			const may = stopReason !== "toolUse" && ctx.mode === "print" ? isSilent : fitting(at, outcome, stopReason);
			const ours = answer && this.takeable(answer, may);
			return ours?.length ? { entries: [...event.entries, ...ours] } : undefined;
		} catch {
			return undefined;
		}
	}

	/** The entries of an answer that Pi can take where it stands now. */
	private takeable(answer: Json, may: (draft: Draft) => boolean): Draft[] | undefined {
		const batches = batchesOf(answer.entries);
		if (!batches || !this.stillAt(answer.leaf)) return undefined;
		const drafts = batches.filter((batch) => batch.every(may)).flat();
		// One entry that Pi cannot apply would lose everybody's.
		const found = drafts.every((draft) => this.known(draft.targetId) && this.known(draft.firstKeptEntryId));
		return found ? drafts : undefined;
	}

	private known(id: unknown): boolean {
		return typeof id !== "string" || this.sessions.getEntry(id) !== undefined;
	}

	/** Before a compaction: one of ours in its place, or nothing; for one that this bridge started, an end. */
	private async beforeCompact(event: BeforeCompact): Promise<unknown> {
		const own = event.reason === "manual" && this.own?.token === event.customInstructions ? this.own : undefined;
		// Nobody asked Pi for a summary there.
		const nothing = own ? { cancel: true } : undefined;
		try {
			const link = this.serving;
			if (!link || (own && !this.stillAt(own.leaf))) return nothing;
			const at = "session_before_compact";
			const instructions = own ? null : (event.customInstructions ?? null);
			const question = { at, leaf: this.sessions.getLeafId(), reason: event.reason, instructions };
			const asked = own ? { ...question, token: own.token } : question;
			const answer = await link.ask(asked, link.limits.compactMs, event.signal);
			if (!answer || !isCompaction(answer.compaction) || !this.stillAt(answer.leaf)) return nothing;
			return this.known(answer.compaction.firstKeptEntryId) ? { compaction: answer.compaction } : nothing;
		} catch {
			return nothing;
		}
	}

	// Where Pi stands. Read each time, never remembered.

	private get sessions(): Sessions {
		return this.ctx.sessionManager;
	}

	private state(): { leaf: Leaf; idle: boolean } {
		return { leaf: this.sessions.getLeafId(), idle: this.idle() };
	}

	private idle(): boolean {
		return this.prompt === "none" && this.ctx.isIdle() && !this.ctx.hasPendingMessages();
	}

	/** Whether Pi stands where it stood at `leaf`, entries that give no message apart. */
	private stillAt(leaf: unknown): boolean {
		let id = this.sessions.getLeafId();
		for (let steps = 0; id !== leaf; steps++) {
			const entry = id === null ? undefined : this.sessions.getEntry(id);
			if (!entry || !SILENT.has(entry.type) || steps > 1000) return false;
			id = entry.parentId ?? null;
		}
		return true;
	}

	/** An event after which Pi may stand elsewhere. What it leads to is reported once, when Pi is done with it. */
	moved(on: string, event?: Event): void {
		if (on === "message_start" && event?.message?.role === "user" && this.prompt === "typed") this.prompt = "begun";
		if (!this.serving) return this.look();
		if (this.reporting === undefined) setImmediate(() => quietly(() => this.report(this.reporting ?? on)));
		this.reporting = on;
	}

	/** The user has sent something. Pi calls itself idle until the run for it begins. */
	typed(): void {
		this.prompt = "typed";
		this.moved("input");
	}

	/** A run has settled, and with it the prompts whose message it began with. */
	settled(): void {
		if (this.prompt === "begun") this.prompt = "none";
		this.moved("agent_settled");
	}

	/** Tells the daemon where Pi stands, unless it knows. */
	private report(on: string): void {
		this.reporting = undefined;
		const link = this.serving;
		if (!link || this.closed) return;
		const state = this.state();
		const key = JSON.stringify(state);
		if (key === link.told) return;
		link.told = key;
		link.send({ ...state, on });
	}

	// The end.

	/** Says goodbye, and waits a moment for it to be on its way. */
	async leave(why: string): Promise<void> {
		const links = [...this.links.values()];
		this.stop();
		await Promise.all(links.map((link) => link.farewell({ bye: why })));
	}

	close(): void {
		const links = [...this.links.values()];
		this.stop();
		for (const link of links) link.close(false);
	}

	private stop(): void {
		this.closed = true;
		clearTimeout(this.timer);
		this.unhook();
		this.serving = undefined;
		release(this.file, this);
	}
}

/** Who hears a connection's messages, and once of its end: also whether the other side broke the protocol. */
interface Listener {
	heard(message: Json): void;
	lost(broken: boolean): void;
}

/** A connection to a daemon: lines both ways, and the questions that wait for an answer. */
class Link {
	readonly path: string;
	/** How long Pi may wait, in milliseconds, by kind of hook. */
	readonly limits: Record<keyof typeof LIMITS, number> = { turnEndMs: 500, settleMs: 500, compactMs: 120_000 };
	/** Where Pi stood when it was last told. */
	told = "";
	private readonly socket: Socket;
	private readonly waiting = new Map<number, (answer?: Json) => void>();
	private readonly owner: Listener;
	private asked = 0;
	private parts: Buffer[] = [];
	private bytes = 0;
	private over = false;

	constructor(path: string, owner: Listener) {
		this.path = path;
		this.owner = owner;
		this.socket = connect(path);
		// An open socket would keep `pi -p` alive.
		this.socket.unref();
		this.socket.on("error", () => this.close(false));
		this.socket.on("close", () => this.close(false));
		this.socket.on("data", (chunk: Buffer) => this.read(chunk));
	}

	/** False if the line cannot be sent. */
	send(message: Json): boolean {
		const line = quietly(() => `${JSON.stringify(message)}\n`);
		if (this.over || line === undefined || Buffer.byteLength(line) > MOST_BYTES) return false;
		this.socket.write(line);
		// A daemon that reads nothing must not fill our memory.
		if (this.socket.writableLength > 2 * MOST_BYTES) this.close(true);
		return !this.over;
	}

	/** Asks, and waits for the answer: not longer than `limit`, and not after an abort. */
	ask(question: Json, limit: number, signal?: AbortSignal): Promise<Json | undefined> {
		const ask = ++this.asked;
		return new Promise((resolve) => {
			const end = (answer?: Json) => {
				if (!this.waiting.delete(ask)) return;
				clearTimeout(timer);
				signal?.removeEventListener("abort", giveUp);
				resolve(answer);
			};
			const giveUp = () => {
				this.send({ cancel: ask });
				end();
			};
			// This timer does keep Pi alive: it would exit in the middle of its own hook otherwise.
			const timer = setTimeout(giveUp, limit);
			this.waiting.set(ask, end);
			if (signal?.aborted || !this.send({ ask, ...question, ms: limit })) return end();
			signal?.addEventListener("abort", giveUp, { once: true });
		});
	}

	/** One that nobody waits for any more is let go. */
	answered(ask: number, answer: Json): void {
		this.waiting.get(ask)?.(answer);
	}

	private read(chunk: Buffer): void {
		let from = 0;
		for (let end = chunk.indexOf(10); end >= 0 && !this.over; end = chunk.indexOf(10, from)) {
			this.take(chunk.subarray(from, end));
			const line = Buffer.concat(this.parts).toString();
			this.parts = [];
			this.bytes = 0;
			from = end + 1;
			if (!this.over) this.hear(line);
		}
		this.take(chunk.subarray(from));
	}

	private take(part: Buffer): void {
		this.parts.push(part);
		this.bytes += part.length;
		if (this.bytes > MOST_BYTES) this.close(true);
	}

	private hear(line: string): void {
		const message: unknown = quietly(() => JSON.parse(line));
		if (isObject(message)) quietly(() => this.owner.heard(message));
		else this.close(true);
	}

	/** Sends a last line and closes. */
	farewell(message: Json): Promise<void> {
		this.send(message);
		return new Promise((resolve) => {
			const end = () => {
				clearTimeout(timer);
				this.close(false);
				resolve();
			};
			const timer = setTimeout(end, FAREWELL);
			if (this.over) end();
			else this.socket.end(end);
		});
	}

	close(broken: boolean): void {
		if (this.over) return;
		this.over = true;
		this.parts = [];
		this.socket.destroy();
		for (const end of [...this.waiting.values()]) end();
		quietly(() => this.owner.lost(broken));
	}
}

// Which bridge has a session: the same extension may be installed twice, for all projects and for this one.

type Claims = Map<string, Bridge>;

function claims(): Claims {
	const key = Symbol.for("pi-graft.bridges");
	const shared = globalThis as unknown as Record<symbol, Claims | undefined>;
	shared[key] ??= new Map();
	return shared[key];
}

function claim(file: string, bridge: Bridge): boolean {
	const holder = claims().get(file);
	if (holder?.alive()) return false;
	claims().set(file, bridge);
	return true;
}

function release(file: string, bridge: Bridge): void {
	if (claims().get(file) === bridge) claims().delete(file);
}

// The daemon's sockets.

/** What may be connected to: sockets of this user, in a directory that nobody else can write to. */
function sockets(): { path: string; identity: string }[] {
	const uid = process.getuid!();
	return (
		quietly(() => {
			const dir = runtimeDir(uid);
			const { uid: owner, mode } = statSync(dir);
			if (owner !== uid || (mode & 0o022) !== 0) return [];
			const names = readdirSync(dir).filter((name) => name.startsWith("state-") && name.endsWith(".sock"));
			return names.flatMap((name) => {
				const path = join(dir, name);
				const stat = lstatSync(path);
				if (!stat.isSocket() || stat.uid !== uid) return [];
				return [{ path, identity: `${path} ${stat.ino} ${stat.ctimeMs}` }];
			});
		}) ?? []
	);
}

function runtimeDir(uid: number): string {
	const { PI_GRAFT_RUNTIME_DIR: own, XDG_RUNTIME_DIR: xdg, TMPDIR: tmp } = process.env;
	return own || (xdg ? join(xdg, "pi-graft") : join(tmp || "/tmp", `pi-graft-${uid}`));
}

// What the daemon sends, looked at before Pi gets it.

/** The batches of a list of entries; undefined if it is no such list. */
function batchesOf(entries: unknown): Batch[] | undefined {
	if (!Array.isArray(entries) || !entries.every(isDraft)) return undefined;
	const batches: Batch[] = [];
	for (const draft of entries) {
		if (draft.type === "custom" && draft.customType === RECEIPT) batches.push([draft]);
		else if (batches.length === 0) return undefined;
		else batches[batches.length - 1].push(draft);
	}
	return batches.every(isWhole) ? batches : undefined;
}

/** Whether all that its receipt counts is there. */
function isWhole([receipt, ...drafts]: Batch): boolean {
	return isObject(receipt.data) && receipt.data.entries === drafts.length;
}

/** Whether Pi can take it: Pi itself checks almost nothing, and some mistakes spoil the session for good. */
function isDraft(value: unknown): value is Draft {
	if (!isObject(value)) return false;
	switch (value.type) {
		case "custom":
			return isText(value.customType);
		case "custom_message":
			return isText(value.customType) && isContent(value.content) && typeof value.display === "boolean";
		case "context_edit":
			return isText(value.targetId) && isReplacement(value.replacement);
		case "compaction":
			return isText(value.summary) && isKept(value.firstKeptEntryId);
		default:
			return false;
	}
}

function isCompaction(value: unknown): value is Json {
	if (!isObject(value) || typeof value.tokensBefore !== "number") return false;
	return isText(value.summary) && isKept(value.firstKeptEntryId);
}

function isReplacement(value: unknown): boolean {
	return value === null || (isObject(value) && isContent(value.content));
}

function isKept(value: unknown): boolean {
	return value === null || isText(value);
}

function isContent(value: unknown): boolean {
	return typeof value === "string" || (Array.isArray(value) && value.every(isObject));
}

function isText(value: unknown): value is string {
	return typeof value === "string" && value !== "";
}

function isObject(value: unknown): value is Json {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** After a turn that failed, a compaction would make Pi skip its own recovery, and leave the prompt unanswered. */
function fitting(at: string, outcome: string | null, stopReason: string | null): (draft: Draft) => boolean {
	const well = outcome === "completed" && (at !== "turn_end" || stopReason === "stop" || stopReason === "toolUse");
	return (draft) => well || draft.type !== "compaction";
}

/** `pi -p` prints its last message if that is an answer: nothing may come behind it, or take it away, before the end. */
function isSilent(draft: Draft): boolean {
	return draft.type === "custom";
}

/** What `work` gives; undefined if it throws. Nothing of ours may reach Pi as an error. */
function quietly<T>(work: () => T): T | undefined {
	try {
		return work();
	} catch {
		return undefined;
	}
}

/** Why `work` failed, if it did. */
function problem(work: () => void): string | undefined {
	try {
		work();
		return undefined;
	} catch (error) {
		return textOf(error);
	}
}

function textOf(error: unknown): string {
	return (error instanceof Error ? error.message : String(error)).slice(0, 500);
}
