// The contract pi-graft:plugin@0.1.0, as a component sees it. Made from plugin-api/wit by
// `cargo run -p guest-build -- contract`; do not edit. Plugins use the SDK in ./index.ts instead.

declare module "pi-graft:plugin/types@0.1.0" {
  /** One entry as a plugin first sees it: small, whatever the size of the entry. */
  export interface Info {
    /** Where it stands on the branch, counted from the root. Places may have gaps: receipts are not shown. */
    place: number;
    /** Its id; none while it is pending. Only an entry with an id can be the target of an edit or be kept from. */
    id?: string | undefined;
    /** The id of the entry before it on the branch. */
    parent?: string | undefined;
    /** Its type, such as `message`, `custom` or `compaction`. */
    kind: string;
    /** The role of a message. */
    role?: string | undefined;
    /** The `customType` of a `custom` or `custom_message`. */
    customType?: string | undefined;
    /** Its timestamp in Unix milliseconds; none if it has none that can be read. */
    timeMs?: bigint | undefined;
    /** The estimate of the tokens of the message it gives, edits applied; 0 if it gives none or is omitted. */
    tokens: number;
    /** Bytes of its text, about: of an edited entry those of the edit. */
    bytes: bigint;
    /** How the context shows it: `as-is`, `replaced` or `omitted` (by an edit), `hidden` (a compaction stands for
     * it) or `none` (it gives no message). */
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
    /** The entries. */
    items: Array<Info>;
    /** What to pass as `before` for the next page; none at the root. */
    next?: number | undefined;
  }
  /** A piece of a text, cut where a character ends. */
  export interface Piece {
    /** The piece. */
    text: string;
    /** The offset of the next piece; none at the end. */
    next?: bigint | undefined;
  }
  /** Why something was not done, and what to do instead. */
  export interface Refusal {
    /** The rule: one of the session format (`S12.6`), `pending`, `target is pending`, `grant`, `limit` and others. */
    rule: string;
    /** A sentence for people. */
    message: string;
  }
  /** A change to what the context shows of an entry. */
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
    tokensBefore: bigint;
    /** The place of the compaction before, if there is one and it gives its summary. */
    previous?: number | undefined;
    /** Its summary; the first 256 KiB of it. */
    previousSummary?: string | undefined;
    /** Its details (JSON), whoever made it; none if they are over 256 KiB. */
    previousDetails?: string | undefined;
    /** The places of what is to be summarised. */
    toSummarize: Array<number>;
    /** The places of the part of a split turn that goes. */
    turnPrefix: Array<number>;
    /** Files that were only read; of both lists together at most 256 KiB. */
    readFiles: Array<string>;
    /** Files that were changed. */
    modifiedFiles: Array<string>;
  }
  /** Counts of the context's tokens. */
  export interface Tokens {
    /** As the file stands, which is what Pi sends now. */
    inFile: bigint;
    /** With all that is pending. */
    withPending: bigint;
    /** The last reported usage, less what later edits save; none if nothing was reported. */
    reported?: bigint | undefined;
  }
  /** What a plugin says of itself, given its config. */
  export interface Description {
    /** Its name. */
    name: string;
    /** Its version. */
    version: string;
    /** Capabilities that it cannot do without, such as `append:custom`. */
    needs: Array<string>;
    /** Capabilities that it uses if they are granted. */
    canUse: Array<string>;
    /** What wakes it: `*`, `message:ROLE`, `message:*`, another entry type, `custom:TYPE`, `custom_message:TYPE`, `graft`. */
    on: Array<string>;
  }
  /** A model's answer. */
  export interface Answer {
    /** What it said. */
    text: string;
    /** Why it stopped: `stop`, or `length` if it was cut off. */
    stop: string;
    /** What it cost (JSON). */
    usage: string;
  }
}

declare module "pi-graft:plugin/session@0.1.0" {
  import type { Info, Plan } from "pi-graft:plugin/types@0.1.0";
  /** The session's header (JSON). */
  export function header(): string;
  /** The entry that woke this run; in `on-settled` the last entry in the file. */
  export function trigger(): Info;
  /** The newest entry, be it pending. */
  export function leaf(): Info;
  /** The branch, newest first: at most `max` entries before the place `before`, or from the leaf. */
  export function branch(before: number | undefined, max: number): Page;
  /** Only those that give messages to the context now, in the same order (the context itself begins with a compaction). */
  export function projection(before: number | undefined, max: number): Page;
  /** A piece of an entry's JSON, from the byte `offset` on: 0, or where the piece before says to go on. */
  export function text(place: number, offset: bigint, max: number): Piece;
  /** The same without edits; for an edited entry this needs the grant `session:raw`. */
  export function raw(place: number, offset: bigint, max: number): Piece;
  /** The entry with this id, if it is on the branch. */
  export function byId(id: string): Info | undefined;
  /** The last `custom` entry of this type on the branch, be it pending. */
  export function lastCustom(customType: string): Info | undefined;
  /** The context's tokens. */
  export function contextTokens(): Tokens;
  /** The usage of the whole file, by model and in total (JSON). */
  export function usageTotals(): string;
  /** What is known of the model: window, prices (JSON). */
  export function modelFacts(): string | undefined;
  /** Pi's compaction settings (JSON): `enabled`, `reserveTokens`, `keepRecentTokens`. */
  export function piCompaction(): string;
  /** What Pi would compact now, with its own settings or these. */
  export function compactionPlan(reserve: bigint | undefined, keep: bigint | undefined): Plan | undefined;
}

declare module "pi-graft:plugin/append@0.1.0" {
  import type { Refusal, Edit } from "pi-graft:plugin/types@0.1.0";
  /** State of the plugin's own, which no model sees. Needs `append:custom`. */
  export function custom(customType: string, data: string | undefined): void;
  /** A message to the model; `content` is JSON: a text or a list of blocks. Needs `append:custom_message`. */
  export function customMessage(customType: string, content: string, display: boolean, details: string | undefined): void;
  /** A summary in place of what stands before `first-kept`; none keeps nothing. Needs `append:compaction`. */
  export function compaction(summary: string, firstKept: string | undefined, details: string | undefined, usage: string | undefined): void;
  /** Edits that are judged as one, so that a call and its results can go together. Needs `append:context_edit`. */
  export function contextEdits(edits: Array<Edit>): Array<{ tag: "ok"; val: undefined } | { tag: "err"; val: Refusal }>;
  /** In `on-entry`: asks for `on-settled`, with a note of at most 4 KiB; of several the last counts. */
  export function later(note: string): void;
}

declare module "pi-graft:plugin/model@0.1.0" {
  import type { Answer } from "pi-graft:plugin/types@0.1.0";
  /** One completion. The request is JSON: `system`, `messages`, `maxTokens`. */
  export function complete(name: string, request: string): Answer;
}

declare module "pi-graft:plugin/log@0.1.0" {
  /** One line at the level `error`, `warn`, `info` or `debug`; cut at 4 KiB. */
  export function log(level: string, text: string): void;
}

declare module "pi-graft:plugin/handler@0.1.0" {
  /** What it is, given its config (JSON). An error says what is wrong with the config. */
  export function describe(config: string): Description;
  /** Called once on each entry that wakes the plugin. Quick, and without a model. */
  export function onEntry(config: string): void;
  /** Called when the branch is at rest and the plugin asked for it, with all its notes (reason `settled` or
   * `boundary`), or when a compaction is wanted (`manual`, `threshold` or `overflow`), with the user's instructions. */
  export function onSettled(config: string, reason: string, notes: Array<string>, instructions: string | undefined): void;
}
