/** A plugin as the component that the host calls. `tool.mjs build` puts it together; plugins do not import this. */
/// <reference path="./contract.d.ts" />
import * as append from "pi-graft:plugin/append@0.1.0";
import { log } from "pi-graft:plugin/log@0.1.0";
import { complete } from "pi-graft:plugin/model@0.1.0";
import * as session from "pi-graft:plugin/session@0.1.0";
import type * as contract from "pi-graft:plugin/types@0.1.0";

import { furnish } from "./guest.ts";
import type { Host, Info, Page, Piece } from "./host.ts";
import { Refused } from "./host.ts";
import type { Plugin } from "./index.ts";
import { Run } from "./run.ts";

const number = (value: bigint | undefined) => (value === undefined ? undefined : Number(value));
const big = (value: number | undefined) => (value === undefined ? undefined : BigInt(Math.trunc(value)));

const info = (of: contract.Info): Info => ({ ...of, timeMs: number(of.timeMs), bytes: Number(of.bytes) });
const maybe = (of: contract.Info | undefined) => (of === undefined ? undefined : info(of));
const page = (of: contract.Page): Page => ({ items: of.items.map(info), next: of.next });
const piece = (of: contract.Piece): Piece => ({ text: of.text, next: number(of.next) });

/** Calls an import whose refusal is thrown as the `payload` of an error. */
function ask<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    const payload = (error as { payload?: contract.Refusal }).payload;
    throw payload === undefined ? error : refused(payload);
  }
}

function refused({ rule, message }: contract.Refusal): Refused {
  return new Refused(rule, message);
}

/** The host of a real run. */
const imports: Host = {
  header: session.header,
  trigger: () => info(session.trigger()),
  leaf: () => info(session.leaf()),
  branch: (before, max) => page(session.branch(before, max)),
  projection: (before, max) => page(session.projection(before, max)),
  text: (place, offset, max) => ask(() => piece(session.text(place, BigInt(offset), max))),
  raw: (place, offset, max) => ask(() => piece(session.raw(place, BigInt(offset), max))),
  byId: (id) => maybe(session.byId(id)),
  lastCustom: (customType) => maybe(session.lastCustom(customType)),
  contextTokens: () => {
    const { inFile, withPending, reported } = session.contextTokens();
    return { inFile: Number(inFile), withPending: Number(withPending), reported: number(reported) };
  },
  usageTotals: session.usageTotals,
  modelFacts: session.modelFacts,
  piCompaction: session.piCompaction,
  compactionPlan: (reserve, keep) => {
    const plan = session.compactionPlan(big(reserve), big(keep));
    return plan && { ...plan, tokensBefore: Number(plan.tokensBefore), toSummarize: [...plan.toSummarize], turnPrefix: [...plan.turnPrefix] };
  },
  custom: (customType, data) => ask(() => append.custom(customType, data)),
  customMessage: (customType, content, display, details) =>
    ask(() => append.customMessage(customType, content, display, details)),
  compaction: (summary, firstKept, details, usage) => ask(() => append.compaction(summary, firstKept, details, usage)),
  contextEdits: (edits) => append.contextEdits(edits).map((of) => (of.tag === "err" ? refused(of.val) : undefined)),
  later: (note) => ask(() => append.later(note)),
  complete: (name, request) => ask(() => complete(name, request)),
  log,
};

/** What the component exports. */
export function handlerOf<Config>(plugin: Plugin<Config>) {
  const read = (config: string) => JSON.parse(config) as Config;
  const name = (config: Config) => plugin.describe(config).name;
  const begin = (config: Config) => {
    furnish(imports, name(config), true);
    return new Run(imports);
  };
  return {
    describe: (text: string): contract.Description =>
      tell(() => {
        const config = read(text);
        furnish(imports, "", false);
        return { needs: [], canUse: [], on: [], ...plugin.describe(config) };
      }),
    onEntry: (text: string): void =>
      tell(() => {
        const config = read(text);
        plugin.onEntry?.(begin(config), config);
      }),
    onSettled: (text: string, reason: string, notes: string[], instructions: string | undefined): void =>
      tell(() => {
        const config = read(text);
        plugin.onSettled?.(begin(config), { reason, notes, instructions }, config);
      }),
  };
}

/** An error becomes the text that the contract has for it; thrown as it is, it would be a crash without a word. */
function tell<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw Object.assign(new Error("failed"), { payload: words(error) });
  }
}

function words(error: unknown): string {
  if (error instanceof Refused) return `${error.rule}: ${error.message}`;
  if (!(error instanceof Error)) return String(error);
  const plain = error.constructor === Error;
  return plain ? error.message : `${error}${error.stack ? `\n${error.stack}` : ""}`;
}
