/**
 * A plugin in the real host, on a session of a few lines: for a plugin's own `npm test`.
 *
 * ```ts
 * const seen = play({ config: { every: 2 }, session: [{ user: "hi" }, { assistant: "hello" }, { user: "again" }] });
 * assert.deepEqual(seen.proposed, [{ type: "custom", customType: "count-turns", data: 2 }]);
 * ```
 *
 * `npm test` builds the component first, if a test imports this. The host is the `pi-graft` that the variable `PI_GRAFT` names,
 * else the one on the path; `pi-graft plugin try` says what a session can be and what comes of it.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** A call of a tool. */
export interface Call {
  name: string;
  arguments?: Record<string, unknown>;
  id?: string;
}

/** What every line may say, and what is made where it does not: the same each time. */
export interface Common {
  /** `e0`, `e1` and so on unless it is said. */
  id?: string;
  /** The entry before unless it is said. */
  parentId?: string | null;
  /** A second later than the entry before unless it is said. */
  timestamp?: string;
}

/** A line of a session: short for an entry, an entry itself (whatever has a `type`), or a compaction that is wanted here. */
export type Line =
  | (Common & { user: unknown })
  | (Common & {
      assistant: unknown;
      thinking?: string;
      calls?: Call[];
      stop?: string;
      error?: string;
      tokens?: number;
      usage?: unknown;
      model?: string;
    })
  | (Common & { toolResult: unknown; call?: string; tool?: string; isError?: boolean; details?: unknown })
  | (Common & { custom: string; data?: unknown })
  | (Common & { customMessage: string; content: unknown; display?: boolean; details?: unknown })
  | { compact: "manual" | "threshold" | "overflow"; instructions?: string }
  | (Common & { type: string; [member: string]: unknown });

/** A session of a few lines, and how the plugin is run on it. */
export interface Scene {
  session: Line[];
  /** The plugin's config. */
  config?: unknown;
  /** What it is granted; all that it asks for unless it is said. */
  grants?: string[];
  /** Answers of models, each given once and in this order: `[["fast", "a summary"]]`. */
  models?: Array<[name: string, answer: string]>;
  /** The component; that of this package unless it is said. */
  plugin?: string;
}

/** A draft: what a plugin proposed. */
export type Draft = { type: string; [member: string]: unknown };

/** One run. */
export interface Ran {
  /** The number of the entry that it ran on, from 0; none if that is a graft's. */
  entry: number | null;
  /** That entry's id. */
  trigger: string;
  handler: "on-entry" | "on-settled";
  /** `entry`, or the reason of `on-settled`. */
  reason: string;
  /** What it proposed and was accepted, in the host's order. */
  proposed: Draft[];
  /** What became of it: `grafted`, or why not; none if it proposed nothing. */
  outcome: string | null;
  /** Why, where there is something to say. */
  why: string;
  /** What was refused, whether or not the plugin minded. */
  refused: Array<{ rule: string; message: string }>;
  log: Array<{ level: string; text: string }>;
  /** How it failed. */
  failed: { kind: string; message: string } | null;
  /** What it used: the same count on every machine. */
  fuel: number;
}

/** What the plugin did. */
export interface Seen {
  runs: Ran[];
  /** All that was proposed and accepted, in order. */
  proposed: Draft[];
  /** The rules by which something was refused, in order. */
  refused: string[];
  /** What models were asked, those of one model in order. */
  asked: Array<{ model: string; request: Record<string, unknown>; answer: string | null }>;
  /** The model's context at the end. */
  context: Array<{ id: string; tokens: number; message: { role: string; [member: string]: unknown } }>;
  /** Its tokens. */
  tokens: number;
}

/** Runs the plugin on each entry, and when it is settled, as if live. Throws if it does not load, or a run failed. */
export function play(scene: Scene): Seen {
  const input = scene.session.map((line) => JSON.stringify(line)).join("\n");
  const told = JSON.parse(host(["--json", "plugin", "try", scene.plugin ?? component(), "-", ...options(scene)], input)) as Seen;
  for (const { failed, handler, entry, log } of told.runs) {
    if (failed === null) continue;
    const lines = log.map(({ level, text }) => `\n  ${level}: ${text}`).join("");
    throw new Error(`${handler} failed on ${entry === null ? "a graft" : `entry ${entry}`}: ${failed.kind}: ${failed.message}${lines}`);
  }
  const { runs } = told;
  return { ...told, proposed: runs.flatMap((run) => run.proposed), refused: runs.flatMap((run) => run.refused.map(({ rule }) => rule)) };
}

function options({ config, grants, models = [] }: Scene): string[] {
  const given = config === undefined ? [] : ["--plugin-config", JSON.stringify(config)];
  const granted = grants?.length === 0 ? [""] : (grants ?? []);
  return [...given, ...granted.flatMap((grant) => ["--grant", grant]), ...models.flatMap(([name, answer]) => ["--model", `${name}=${answer}`])];
}

function component(): string {
  return `${(JSON.parse(readFileSync("package.json", "utf8")) as { name: string }).name}.wasm`;
}

function host(args: string[], input: string): string {
  const program = process.env.PI_GRAFT ?? "pi-graft";
  const { error, stdout, stderr } = spawnSync(program, args, { input, encoding: "utf8", maxBuffer: 1 << 30 });
  if (error !== undefined) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const what = "put pi-graft on the path, or name it in the environment, as in PI_GRAFT=/path/to/pi-graft";
    throw new Error(missing ? `${program} is not there: ${what}` : `${program}: ${error.message}`);
  }
  if (!stdout.startsWith("{")) throw new Error(stderr.trim());
  return stdout;
}
