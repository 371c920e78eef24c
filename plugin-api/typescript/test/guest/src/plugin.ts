// Uses everything that a component has, in the real host, and fails loudly where something is not as the SDK says.
// `.ci/plugins` builds it, and runs it on a session.
import { Refused, omit, plugin, textOf, type Run } from "../../../src/index.ts";

interface Config {
  /** Makes `describe` fail with this text. */
  refuse?: string;
}

export default plugin<Config>({
  describe({ refuse }) {
    if (refuse !== undefined) throw new Error(refuse);
    console.log("described");
    return { name: "everything", version: "0.1.0", needs: ["append:custom"], canUse: ["model:none"], on: ["message:user"] };
  },

  onEntry(run) {
    reads(run);
    furnished(run);
    refusals(run);
    run.appendCustom("everything", { nested: ["ünïcödé 😀", 1.5, null] });
    run.later("the note");
    console.log("all of it works");
  },

  onSettled(run, { reason, notes }) {
    check(reason === "settled" && notes.length > 0, "why it was called");
    refused(() => run.complete("none", { messages: [] }), "grant");
    console.log("settled too");
  },
});

function reads(run: Run): void {
  const { trigger } = run;
  check(trigger.role === "user" && typeof trigger.timeMs === "number" && typeof trigger.bytes === "number", "the trigger");
  check(run.header.type === "session", "the header");
  const branch = [...run.branch()];
  check(branch.length > 0 && branch[0]?.place === run.leaf.place, "the branch begins at the leaf");
  check([...run.projection()].every((info) => info.tokens > 0), "what the context shows has tokens");
  const entry = run.entry(trigger, 1_000_000);
  check(entry !== undefined && textOf(entry).length > 0, "its text");
  check(run.entry(trigger, 1) === undefined, "a limit on its length");
  check(trigger.id !== undefined && run.byId(trigger.id)?.place === trigger.place, "by id");
  check(run.byId("no such id") === undefined && run.lastCustom("none of this type") === undefined, "what is not there");
  check(run.contextTokens().inFile > 0, "the context's tokens");
  check(typeof run.usageTotals() === "object" && typeof run.piCompaction().reserveTokens === "number", "JSON");
  check(run.modelFacts() === undefined || typeof run.modelFacts() === "object", "the model's facts");
  const plan = run.compactionPlan({ reserve: 1, keep: 1 });
  check(plan === undefined || Array.isArray(plan.toSummarize), "a plan");
}

function furnished(run: Run): void {
  check(Date.now() === run.trigger.timeMs && new Date().getTime() === Date.now(), "the clock stands at the trigger");
  const numbers = [Math.random(), Math.random()];
  check(numbers.every((n) => n >= 0 && n < 1) && numbers[0] !== numbers[1], "randomness");
  console.log(`random ${numbers.join(" ")}`);
}

function refusals(run: Run): void {
  refused(() => run.text(1_000_000, 10), "place");
  refused(() => run.appendMessage({ customType: "x", content: "hi" }), "S12.1");
  refused(() => run.complete("none", { messages: [] }), "handler");
  const answers = run.appendEdits([omit("no such id")]);
  check(answers.length === 1 && answers[0] instanceof Refused, "an edit is answered");
}

function refused(call: () => unknown, rule: string): void {
  try {
    call();
  } catch (error) {
    check(error instanceof Refused && error.rule === rule, `expected ${rule}, got ${error}`);
    return;
  }
  check(false, `nothing was refused, expected ${rule}`);
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`not as it should be: ${what}`);
}
