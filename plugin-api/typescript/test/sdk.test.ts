import assert from "node:assert/strict";
import { test } from "node:test";

import { furnish } from "../src/guest.ts";
import { Refused, omit, plugin, replace, textOf, toolCallsOf } from "../src/index.ts";
import { FakeHost, assistant, onEntry, onSettled, user } from "../src/testing.ts";

test("the branch is walked from the leaf, page by page", () => {
  const many = Array.from({ length: 200 }, (_, n) => user(`question ${n}`));
  const places: number[] = [];
  onEntry(plugin({ describe, onEntry: (run) => void places.push(...[...run.branch()].map((info) => info.place)) }), {}, many);
  assert.deepEqual(places, Array.from({ length: 200 }, (_, n) => 199 - n));
});

test("what is proposed arrives as it was given", () => {
  const host = onEntry(
    plugin({
      describe,
      onEntry(run) {
        run.appendCustom("count", { n: 1 });
        run.appendMessage({ customType: "note", content: "hello" });
        run.appendCompaction({ summary: "all of it", firstKept: run.leaf.id });
        assert.deepEqual(run.appendEdits([omit("e0"), replace("e1", "short")]), [undefined, undefined]);
        run.later("soon");
        run.log("info", "done");
      },
    }),
    {},
    [user("hi"), assistant("hello")],
  );
  assert.deepEqual(host.customs, [{ customType: "count", data: { n: 1 } }]);
  assert.deepEqual(host.messages, [{ customType: "note", content: "hello", display: true, details: undefined }]);
  assert.equal(host.compactions[0]?.firstKept, "e1");
  assert.deepEqual(host.edits, [{ target: "e0" }, { target: "e1", replacement: '{"content":"short"}' }]);
  assert.equal(host.note, "soon");
  assert.deepEqual(host.logs, [{ level: "info", text: "done" }]);
});

test("an entry is read with its text and its calls, unless it is too long", () => {
  const call = { type: "toolCall", id: "c", name: "bash", arguments: { command: "ls" } };
  const entry = { type: "message", message: { role: "assistant", content: [{ type: "text", text: "look" }, call] } };
  onEntry(
    plugin({
      describe,
      onEntry(run) {
        const read = run.entry(run.trigger, 1000);
        assert(read !== undefined);
        assert.equal(textOf(read), "look");
        assert.deepEqual(toolCallsOf(read), [call]);
        assert.equal(run.entry(run.trigger, 10), undefined);
      },
    }),
    {},
    [entry],
  );
});

test("a model answers, or its refusal is thrown", () => {
  const asks = plugin({
    describe,
    onSettled(run, { notes }) {
      const { text } = run.complete("summary", { messages: [{ role: "user", content: notes.join() }] });
      run.appendCustom("said", text);
    },
  });
  assert.throws(() => onSettled(asks, {}, [user("hi")]), (error) => error instanceof Refused && error.rule === "model");
});

test("clock and randomness are those of the run, and the same the next time", () => {
  const [date, random, console] = [globalThis.Date, Math.random, globalThis.console];
  const host = new FakeHost([{ ...user("hi"), timestamp: "2026-01-02T03:04:05.000Z" }]);
  const seen = () => {
    furnish(host, "me", true);
    return [new Date().toISOString(), Date.now(), new Date(0).getTime(), new Date() instanceof Date, Math.random(), Math.random()];
  };
  try {
    const first = seen();
    assert.equal(first[0], "2026-01-02T03:04:05.000Z");
    assert.deepEqual(first.slice(1, 4), [Date.parse("2026-01-02T03:04:05.000Z"), 0, true]);
    assert.deepEqual(seen(), first);
    globalThis.console.warn("careful", { n: 1 });
    assert.deepEqual(host.logs, [{ level: "warn", text: 'careful {"n":1}' }]);
  } finally {
    globalThis.Date = date;
    Math.random = random;
    globalThis.console = console;
  }
});

function describe() {
  return { name: "test", version: "1" };
}
