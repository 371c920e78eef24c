/**
 * What JavaScript takes for granted and a guest has not: a clock, randomness, a console. A run is a function of the session,
 * so the clock stands at the trigger's time and the randomness comes from session, trigger and plugin.
 */
import type { Host, Level } from "./host.ts";

/** Runs something with clock, randomness and console of this host, without a session only the console. */
export function furnish(host: Host, name: string, hasSession: boolean): void {
  const trigger = hasSession ? host.trigger() : undefined;
  setClock(trigger?.timeMs ?? 0);
  setRandomness(hasSession ? `${host.header()} ${trigger?.id} ${name}` : name);
  setConsole(host);
}

const RealDate = Date;

function setClock(now: number): void {
  const Stopped = function (this: unknown, ...args: unknown[]) {
    if (!new.target) return new RealDate(now).toString();
    const of = args.length === 0 ? [now] : args;
    return Reflect.construct(RealDate, of, new.target) as Date;
  } as unknown as DateConstructor;
  Object.assign(Stopped, { parse: RealDate.parse, UTC: RealDate.UTC, now: () => now });
  Object.defineProperty(Stopped, "prototype", { value: RealDate.prototype });
  globalThis.Date = Stopped;
}

/** A small generator of 32 bits (mulberry32) on a hash of the seed (FNV-1a): not for secrets, of which a guest has none. */
function setRandomness(seed: string): void {
  let state = 0x811c9dc5;
  for (let at = 0; at < seed.length; at++) state = Math.imul(state ^ seed.charCodeAt(at), 0x01000193);
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function setConsole(host: Host): void {
  const line = (level: Level) => (...values: unknown[]) => host.log(level, values.map(shown).join(" "));
  const console = { log: line("info"), info: line("info"), warn: line("warn"), error: line("error"), debug: line("debug") };
  Object.defineProperty(globalThis, "console", { value: console, configurable: true, writable: true });
}

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof Error ? String(value) : (JSON.stringify(value) ?? String(value));
}
