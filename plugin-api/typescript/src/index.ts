/**
 * Write plugins for pi-graft in TypeScript.
 *
 * A plugin is the default export of `src/plugin.ts`, made by {@link plugin}. Each call is a new instance: nothing is
 * remembered from one to the next but what the plugin appends. There are no files, no network and no environment; the clock
 * stands at the trigger's time, `Math.random` is the same for the same session, trigger and plugin, and `console` writes
 * to the plugin's log.
 *
 * @module
 */
import type { Run, Settled } from "./run.ts";

export type { Block, Content, Entry, Message } from "./entry.ts";
export { textOf, toolCallsOf } from "./entry.ts";
export type { Answer, Edit, Host, Info, Level, Page, Piece, Plan, Tokens } from "./host.ts";
export { Refused } from "./host.ts";
export type { Compaction, CustomMessage, Settled } from "./run.ts";
export { Run, omit, replace } from "./run.ts";

/** What a plugin says of itself. */
export interface Description {
  /** Its name. */
  name: string;
  /** Its version. */
  version: string;
  /** Capabilities that it cannot do without, such as `append:custom`. */
  needs?: string[];
  /** Capabilities that it uses if they are granted. */
  canUse?: string[];
  /** What wakes it: `*`, `message:ROLE`, `message:*`, another entry type, `custom:TYPE`, `custom_message:TYPE`, `graft`. */
  on?: string[];
}

/** A plugin. Only `describe` has to be written; a handler that is not does nothing. */
export interface Plugin<Config = unknown> {
  /**
   * What the plugin is, given its config, as `[plugin.config]` of the host's config has it. Called when it is loaded,
   * without a session. Throw to say what is wrong with the config: the plugin is then not loaded.
   */
  describe(config: Config): Description;
  /** Called once on each entry that wakes the plugin. What it proposes is kept unless it throws. Quick, without a model. */
  onEntry?(run: Run, config: Config): void;
  /** Called when the branch is at rest and {@link Run.later} asked for it, or when a compaction is wanted. */
  onSettled?(run: Run, settled: Settled, config: Config): void;
}

/** Makes a plugin: `export default plugin<Config>({ … })`. */
export function plugin<Config = Record<string, never>>(of: Plugin<Config>): Plugin<Config> {
  return of;
}
