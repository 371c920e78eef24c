// Records the session that the plugins' pages show: a real Pi in a small project, with a model that follows a script.
// NODE=… PI_CLI=… node record-shop.mjs OUT
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { makeHome, startPi } from "./rpc-lib.mjs";

const call = (name, args) => ({ calls: [{ name, args }] });
const say = (text) => ({ text });
// What the user says, and what the model answers until it has nothing more to do.
const talk = [
	[
		"Customers cannot log in since yesterday. Find out why. Do not touch src/legacy.ts.",
		call("read", { path: "src/server.ts" }),
		call("bash", { command: "cat .env" }),
		call("bash", { command: "sh test.sh" }),
		say("The pool in src/server.ts is ended by the first failed login, so each later one fails with `Cannot use a pool after calling end on the pool`."),
	],
	[
		"Mend it, and see whether the database answers.",
		call("edit", { path: "src/server.ts", edits: [{ oldText: "  await pool.end();\n", newText: "" }] }),
		call("bash", { command: "sh query.sh postgres://shop:Kr8!vhq2x@db.shop.test:5432/shop" }),
		say("The line `await pool.end()` is gone, and the database answers."),
	],
	["Run the tests again.", call("bash", { command: "sh test.sh | tail -3" }), say("All 600 pass.")],
	["Write it into the changelog.", call("write", { path: "CHANGELOG.md", content: "- Login works again after a failed one.\n" }), say("CHANGELOG.md has a line about it.")],
];
const names = ["orders", "carts", "users", "prices", "stock", "coupons", "reviews", "returns", "shipping", "taxes", "invoices", "wishes"];
const route = (name) => `app.get("/${name}/:id", async (request, reply) => {\n  const found = await pool.query("select * from ${name} where id = $1", [request.params.id]);\n  if (found.rows.length === 0) return reply.code(404).send({ error: "no such ${name}" });\n  return reply.send(found.rows[0]);\n});\n\napp.delete("/${name}/:id", async (request, reply) => {\n  await pool.query("delete from ${name} where id = $1", [request.params.id]);\n  return reply.code(204).send();\n});\n`;
const login = `app.post("/login", async (request, reply) => {\n  const user = await find(request.body.name);\n  if (user) return reply.send(user);\n  await pool.end();\n  return reply.code(401).send();\n});\n`;

function furnish(work) {
	mkdirSync(join(work, "src"), { recursive: true });
	writeFileSync(join(work, "src/server.ts"), ["// The shop's server.\n", ...names.map(route), login].join("\n"));
	writeFileSync(join(work, ".env"), "PORT=8080\nDB_HOST=db.shop.test\nDB_PASSWORD=Kr8!vhq2x\n");
	writeFileSync(join(work, "query.sh"), "echo connected to $1\n");
	writeFileSync(join(work, "test.sh"), `for n in $(seq 1 600); do echo "ok $n - ${names.slice(0, 3).join(", ")}: case $n"; done\necho "# pass 600"\n`);
}

/** A model that gives the next answer of the script, and counts tokens by characters. */
function model(answers) {
	const server = createServer((request, response) => {
		let body = "";
		request.on("data", (data) => (body += data));
		request.on("end", () => {
			const { text = "", calls = [] } = answers.shift();
			const chunk = (o) => response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", ...o })}\n\n`);
			const tools = calls.map(({ name, args }, index) => ({ index, id: `call_${answers.length}`, type: "function", function: { name, arguments: JSON.stringify(args) } }));
			response.writeHead(200, { "content-type": "text/event-stream" });
			chunk({ choices: [{ index: 0, delta: { role: "assistant", content: text, ...(calls.length && { tool_calls: tools }) }, finish_reason: null }] });
			chunk({ choices: [{ index: 0, delta: {}, finish_reason: calls.length ? "tool_calls" : "stop" }] });
			const [input, output] = [Math.ceil(body.length / 4), 40];
			chunk({ choices: [], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } });
			response.end("data: [DONE]\n\n");
		});
	});
	return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

const server = await model(talk.flatMap(([, ...answers]) => answers));
const home = makeHome(server.address().port);
home.work = process.env.SHOP_DIR ?? home.work;
rmSync(home.work, { recursive: true, force: true });
furnish(home.work);
const pi = startPi(home, ["--model", "mock/mock-big"]);
for (const [prompt] of talk) await pi.prompt(prompt);
await pi.stop();
// Where Pi was installed is nobody's business.
const session = readFileSync(join(home.sessionDir, readdirSync(home.sessionDir)[0]), "utf8");
writeFileSync(process.argv[2], session.replaceAll(join(process.env.PI_CLI, "../../.."), "/opt/pi"));
server.close();
