/** One run: reading the session, and proposing. */
import type { Entry } from "./entry.ts";
import type { Answer, Edit, Host, Info, Level, Page, Piece, Plan, Tokens } from "./host.ts";
import { Refused } from "./host.ts";

/** Entries in a page: enough to make the calls few, little enough to throw away. */
const PAGE = 64;
/** Bytes in a piece of text: the most that the host gives. */
const PIECE = 65_536;

/** Why `onSettled` is called. */
export interface Settled {
  /** `settled`, `boundary`; `manual`, `threshold` or `overflow` where a compaction is wanted; more may come. */
  reason: string;
  /** The notes that `onEntry` left with {@link Run.later}, oldest first. */
  notes: string[];
  /** The user's instructions for a compaction. */
  instructions?: string | undefined;
}

/** A message to the model, which stands on the branch like one of the user's. */
export interface CustomMessage {
  /** The plugin's own name for its kind of message. */
  customType: string;
  /** A text, or a list of blocks. */
  content: unknown;
  /** Whether Pi shows it to the user too; it does unless this is false. */
  display?: boolean;
  /** Anything else, which the model does not see. */
  details?: unknown;
}

/** A summary that takes the place of what stands before an entry. */
export interface Compaction {
  summary: string;
  /** The id of the first entry to keep; none keeps nothing. */
  firstKept?: string | undefined;
  /** Anything else, which the model does not see; Pi's own are `{readFiles, modifiedFiles}`. */
  details?: unknown;
  /** What making it cost, in the shape of an assistant message's `usage`. */
  usage?: unknown;
}

/** An edit that takes an entry out of the context. */
export function omit(target: string): Edit {
  return { target };
}

/** An edit that shows this in place of an entry's content: a text, or a list of blocks. */
export function replace(target: string, content: unknown): Edit {
  return { target, replacement: JSON.stringify({ content }) };
}

/** One run of a plugin: the session it runs on, and the place to put what it proposes. */
export class Run {
  /** The host itself, for what has no method here. */
  readonly host: Host;

  constructor(host: Host) {
    this.host = host;
  }

  // --- Reading. A text is as the context shows it: edits are applied, pending ones too. ---

  /** The entry that woke this run; in `onSettled` the last entry in the file. */
  get trigger(): Info {
    return this.host.trigger();
  }

  /** The newest entry, be it pending. */
  get leaf(): Info {
    return this.host.leaf();
  }

  /** The session's header. */
  get header(): Record<string, unknown> {
    return JSON.parse(this.host.header()) as Record<string, unknown>;
  }

  /** The branch from the leaf to the root. Stop when you have seen enough: what is not looked at is not read. */
  branch(): Generator<Info, void> {
    return pages((before) => this.host.branch(before, PAGE));
  }

  /** Those entries of the branch that give messages to the context now, newest first. */
  projection(): Generator<Info, void> {
    return pages((before) => this.host.projection(before, PAGE));
  }

  /** The JSON of an entry, up to about so many characters: a longer one ends early, and is then no whole JSON. */
  text(place: number, most: number): string {
    return gather(most, (offset) => this.host.text(place, offset, PIECE));
  }

  /** The same without edits. For an edited entry this needs `session:raw`. */
  raw(place: number, most: number): string {
    return gather(most, (offset) => this.host.raw(place, offset, PIECE));
  }

  /** An entry, read; none if its text is longer than so many bytes. */
  entry(info: Info, mostBytes: number): Entry | undefined {
    if (info.bytes > mostBytes) return undefined;
    return JSON.parse(this.text(info.place, Number.POSITIVE_INFINITY)) as Entry;
  }

  /** The entry with this id, if it is on the branch. */
  byId(id: string): Info | undefined {
    return this.host.byId(id);
  }

  /** The last `custom` entry of this type on the branch, be it pending: the way to keep state. */
  lastCustom(customType: string): Info | undefined {
    return this.host.lastCustom(customType);
  }

  /** The context's tokens. */
  contextTokens(): Tokens {
    return this.host.contextTokens();
  }

  /**
   * The usage of the whole file up to now: `total`, `byModel` and `byDay` (UTC), each with `input`, `output`, `cacheRead`,
   * `cacheWrite` and `cost`; and `trigger`, what this run's entry has added to it, with its `model` and `day`.
   */
  usageTotals(): unknown {
    return JSON.parse(this.host.usageTotals());
  }

  /** What is known of the model: window, prices. */
  modelFacts(): unknown {
    const facts = this.host.modelFacts();
    return facts === undefined ? undefined : JSON.parse(facts);
  }

  /** Pi's compaction settings. */
  piCompaction(): { enabled: boolean; reserveTokens: number; keepRecentTokens: number } {
    return JSON.parse(this.host.piCompaction());
  }

  /** What Pi would compact now, with its own settings or these. */
  compactionPlan(of: { reserve?: number; keep?: number } = {}): Plan | undefined {
    return this.host.compactionPlan(of.reserve, of.keep);
  }

  // --- Proposing. What is refused throws `Refused`. ---

  /** Proposes a `custom` entry. Needs `append:custom`. */
  appendCustom(customType: string, data?: unknown): void {
    this.host.custom(customType, json(data));
  }

  /** Proposes a message to the model. Needs `append:custom_message`. */
  appendMessage(message: CustomMessage): void {
    const { customType, content, display = true, details } = message;
    this.host.customMessage(customType, JSON.stringify(content), display, json(details));
  }

  /** Proposes a compaction. Needs `append:compaction`. */
  appendCompaction(compaction: Compaction): void {
    const { summary, firstKept, details, usage } = compaction;
    this.host.compaction(summary, firstKept, json(details), json(usage));
  }

  /**
   * Proposes edits, judged as one so that a call and its results can go together. Gives an answer for each: nothing, or why
   * it is refused. Needs `append:context_edit`.
   */
  appendEdits(edits: Edit[]): Array<Refused | undefined> {
    return this.host.contextEdits(edits);
  }

  // --- The rest. ---

  /** In `onEntry`: asks for `onSettled`, with a note of at most 4 KiB. Of several the last counts. */
  later(note = ""): void {
    this.host.later(note);
  }

  /** In `onSettled`: asks a model that the config names. Needs `model:NAME`. */
  complete(name: string, request: { system?: string; messages: unknown[]; maxTokens?: number }): Answer {
    return this.host.complete(name, JSON.stringify(request));
  }

  /** A line for the user's log. */
  log(level: Level, text: string): void {
    this.host.log(level, text);
  }
}

function json(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

function* pages(page: (before: number | undefined) => Page): Generator<Info, void> {
  let before: number | undefined;
  do {
    const { items, next } = page(before);
    yield* items;
    before = next;
  } while (before !== undefined);
}

/** Puts pieces together until there is enough. */
function gather(most: number, piece: (offset: number) => Piece): string {
  let { text, next } = piece(0);
  while (next !== undefined && text.length < most) {
    const more: Piece = piece(next);
    text += more.text;
    next = more.next;
  }
  return text;
}
