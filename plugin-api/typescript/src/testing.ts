/** A host in memory, for a plugin's own unit tests. It judges nothing: what the real host would refuse, it takes. */
import type { Entry } from "./entry.ts";
import type { Answer, Edit, Host, Info, Level, Page, Piece, Plan, Tokens } from "./host.ts";
import { Refused } from "./host.ts";
import type { Plugin } from "./index.ts";
import type { Compaction, CustomMessage, Settled } from "./run.ts";
import { Run } from "./run.ts";

/** The entries that give messages to the context. */
const GIVES = new Set(["message", "custom_message", "compaction", "branch_summary"]);

/** A session of a few entries, and what a plugin did with it. */
export class FakeHost implements Host {
  readonly entries: Array<{ info: Info; text: string }> = [];
  /** What `compactionPlan` answers. */
  plan: Plan | undefined;
  /** What `contextTokens` answers. */
  tokens: Tokens | undefined;
  /** What `modelFacts` answers. */
  facts: unknown;
  /** What `complete` answers. */
  answer: Answer | Refused | undefined;
  /** The custom entries that were proposed. */
  readonly customs: Array<{ customType: string; data: unknown }> = [];
  /** The messages that were proposed. */
  readonly messages: CustomMessage[] = [];
  /** The compactions that were proposed. */
  readonly compactions: Compaction[] = [];
  /** The edits that were proposed. */
  readonly edits: Edit[] = [];
  /** The last note to `later`. */
  note: string | undefined;
  /** The log. */
  readonly logs: Array<{ level: Level; text: string }> = [];

  /** A session with these entries, root first. Ids are given to those that have none: `e0`, `e1` and so on. */
  constructor(entries: Entry[]) {
    entries.forEach((entry, place) => this.entries.push(this.#known({ id: `e${place}`, ...entry }, place)));
  }

  #known(entry: Entry, place: number): { info: Info; text: string } {
    const text = JSON.stringify(entry);
    const gives = GIVES.has(entry.type);
    const time = entry.timestamp === undefined ? Number.NaN : Date.parse(entry.timestamp);
    const info: Info = {
      place,
      id: entry.id,
      parent: this.entries.at(-1)?.info.id,
      kind: entry.type,
      role: entry.message?.role,
      customType: entry.customType,
      timeMs: Number.isNaN(time) ? undefined : time,
      tokens: gives ? Math.floor(text.length / 4) : 0,
      bytes: text.length,
      shown: gives ? "as-is" : "none",
      pending: false,
    };
    return { info, text };
  }

  #page(before: number | undefined, max: number, wanted: (info: Info) => boolean): Page {
    const all = this.entries.slice(0, before).map(({ info }) => info).filter(wanted).reverse();
    const items = all.slice(0, max);
    return { items, next: all.length > items.length ? items.at(-1)?.place : undefined };
  }

  #last(wanted: (info: Info) => boolean): Info | undefined {
    return this.#page(undefined, 1, wanted).items[0];
  }

  header = () => JSON.stringify({ type: "session", version: 3, id: "test" });
  trigger = () => this.leaf();
  leaf(): Info {
    const leaf = this.#last(() => true);
    if (leaf === undefined) throw new Error("a test session has an entry");
    return leaf;
  }
  branch = (before: number | undefined, max: number) => this.#page(before, max, () => true);
  projection = (before: number | undefined, max: number) => this.#page(before, max, (info) => info.shown === "as-is");
  text(place: number, offset: number): Piece {
    const entry = this.entries[place];
    if (entry === undefined) throw new Refused("place", "no such entry");
    return { text: entry.text.slice(offset) };
  }
  raw = (place: number, offset: number) => this.text(place, offset);
  byId = (id: string) => this.#last((info) => info.id === id);
  lastCustom = (customType: string) => this.#last((info) => info.kind === "custom" && info.customType === customType);
  contextTokens(): Tokens {
    const estimate = this.entries.reduce((sum, { info }) => sum + info.tokens, 0);
    return this.tokens ?? { inFile: estimate, withPending: estimate };
  }
  usageTotals = () => "{}";
  modelFacts = () => (this.facts === undefined ? undefined : JSON.stringify(this.facts));
  piCompaction = () => JSON.stringify({ enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 });
  compactionPlan = () => this.plan;
  custom(customType: string, data?: string): void {
    this.customs.push({ customType, data: parsed(data) });
  }
  customMessage(customType: string, content: string, display: boolean, details?: string): void {
    this.messages.push({ customType, content: JSON.parse(content), display, details: parsed(details) });
  }
  compaction(summary: string, firstKept?: string, details?: string, usage?: string): void {
    this.compactions.push({ summary, firstKept, details: parsed(details), usage: parsed(usage) });
  }
  contextEdits(edits: Edit[]): Array<Refused | undefined> {
    this.edits.push(...edits);
    return edits.map(() => undefined);
  }
  later(note: string): void {
    this.note = note;
  }
  complete(): Answer {
    const answer = this.answer ?? new Refused("model", "this test has no model");
    if (answer instanceof Refused) throw answer;
    return answer;
  }
  log(level: Level, text: string): void {
    this.logs.push({ level, text });
  }
}

/** A user's message. */
export function user(text: string): Entry {
  return { type: "message", message: { role: "user", content: text } };
}

/** An assistant's answer. */
export function assistant(text: string): Entry {
  return { type: "message", message: { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" } };
}

/** Runs `onEntry` on the last of these entries. */
export function onEntry<Config>(plugin: Plugin<Config>, config: Config, entries: Entry[]): FakeHost {
  const host = new FakeHost(entries);
  plugin.onEntry?.(new Run(host), config);
  return host;
}

/** Runs `onSettled`. */
export function onSettled<Config>(plugin: Plugin<Config>, config: Config, entries: Entry[], why: Partial<Settled> = {}): FakeHost {
  const host = new FakeHost(entries);
  plugin.onSettled?.(new Run(host), { reason: "settled", notes: [], ...why }, config);
  return host;
}

function parsed(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
