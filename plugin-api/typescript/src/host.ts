/** What the host offers, with numbers in place of `bigint`: the real imports in a component, a fake in tests. */

/** One entry as a plugin first sees it: small, whatever the size of the entry. */
export interface Info {
  /** Where it stands on the branch, counted from the root. */
  place: number;
  /** Its id; none while it is pending. */
  id?: string | undefined;
  /** The id of the entry before it on the branch. */
  parent?: string | undefined;
  /** Its type, such as `message`, `custom` or `compaction`. */
  kind: string;
  /** The role of a message. */
  role?: string | undefined;
  /** The `customType` of a `custom` or `custom_message`. */
  customType?: string | undefined;
  /** Its timestamp in Unix milliseconds. */
  timeMs?: number | undefined;
  /** The estimate of the tokens of the message it gives; 0 if it gives none. */
  tokens: number;
  /** Bytes of its text, about. */
  bytes: number;
  /** How the context shows it: `as-is`, `replaced`, `omitted`, `hidden` or `none`. */
  shown: string;
  /** The plugin that grafted or proposed it. */
  graftedBy?: string | undefined;
  /** Who made the last edit of it: a plugin's name, or empty for Pi and everybody else. */
  editedBy?: string | undefined;
  /** Proposed, but not in the file yet. */
  pending: boolean;
}

/** A page of entries, newest first. */
export interface Page {
  items: Info[];
  /** What to pass as `before` for the next page; none at the root. */
  next?: number | undefined;
}

/** A piece of a text. */
export interface Piece {
  text: string;
  /** The offset of the next piece; none at the end. */
  next?: number | undefined;
}

/** A change to what the context shows of an entry; `omit` and `replace` make one. */
export interface Edit {
  /** The id of the entry. */
  target: string;
  /** JSON of `{"content": …}`; none omits the entry. */
  replacement?: string | undefined;
}

/** What Pi itself would compact now. */
export interface Plan {
  /** The first entry to keep. */
  firstKept?: string | undefined;
  /** Whether the cut falls inside a turn. */
  splitTurn: boolean;
  /** The tokens of the context now. */
  tokensBefore: number;
  /** The place of the compaction before. */
  previous?: number | undefined;
  /** Its summary. */
  previousSummary?: string | undefined;
  /** Its details (JSON), whoever made it. */
  previousDetails?: string | undefined;
  /** The places of what is to be summarised. */
  toSummarize: number[];
  /** The places of the part of a split turn that goes. */
  turnPrefix: number[];
  /** Files that were only read. */
  readFiles: string[];
  /** Files that were changed. */
  modifiedFiles: string[];
}

/** Counts of the context's tokens. */
export interface Tokens {
  /** As the file stands, which is what Pi sends now. */
  inFile: number;
  /** With all that is pending. */
  withPending: number;
  /** The last reported usage, less what later edits save. */
  reported?: number | undefined;
}

/** A model's answer. */
export interface Answer {
  text: string;
  /** `stop`, or `length` if it was cut off. */
  stop: string;
  /** What it cost (JSON). */
  usage: string;
}

/** How much a line in the log matters. */
export type Level = "error" | "warn" | "info" | "debug";

/** Thrown where the host does not do what it was asked; let it pass, or catch it and go on. */
export class Refused extends Error {
  /** The rule: one of the session format (`S12.6`), `pending`, `grant`, `limit` and others. */
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(message);
    this.name = "Refused";
    this.rule = rule;
  }
}

/** The imports of the contract, one method each: see `REFERENCE.md` for what each does and which grant it needs. */
export interface Host {
  header(): string;
  trigger(): Info;
  leaf(): Info;
  branch(before: number | undefined, max: number): Page;
  projection(before: number | undefined, max: number): Page;
  text(place: number, offset: number, max: number): Piece;
  raw(place: number, offset: number, max: number): Piece;
  byId(id: string): Info | undefined;
  lastCustom(customType: string): Info | undefined;
  contextTokens(): Tokens;
  usageTotals(): string;
  modelFacts(): string | undefined;
  piCompaction(): string;
  compactionPlan(reserve?: number, keep?: number): Plan | undefined;
  custom(customType: string, data?: string): void;
  customMessage(customType: string, content: string, display: boolean, details?: string): void;
  compaction(summary: string, firstKept?: string, details?: string, usage?: string): void;
  contextEdits(edits: Edit[]): Array<Refused | undefined>;
  later(note: string): void;
  complete(name: string, request: string): Answer;
  log(level: Level, text: string): void;
}
