#!/usr/bin/env node
// What the real Pi makes of its own settings.json, trust.json, models.json and models-store.json: requests on stdin, one JSON object a line,
//
//   {"agentDir": DIR, "cwd": DIR, "provider": P, "model": ID}
//
// and for each a line with what Pi would work with. It only calls functions of Pi's. PI_DIR says where Pi is.
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const pi = resolve(process.env.PI_DIR);
const load = (path) => import(pathToFileURL(join(pi, "dist/core", path)).href);
const [{ SettingsManager }, { ProjectTrustStore }, { resolveProjectTrusted }, { ModelRuntime }] = await Promise.all(
	["settings-manager.js", "trust-manager.js", "project-trust.js", "model-runtime.js"].map(load),
);

const attempt = (f) => {
	try {
		return f() ?? null;
	} catch (error) {
		return { error: String(error?.message ?? error) };
	}
};

async function trusted(cwd, agentDir, defaultProjectTrust) {
	const options = { cwd, trustStore: new ProjectTrustStore(agentDir), defaultProjectTrust };
	try {
		return await resolveProjectTrusted({ ...options, projectTrustContext: { hasUI: false } });
	} catch {
		return false;
	}
}

async function answer({ agentDir, cwd, provider, model: id }) {
	const atStart = SettingsManager.create(cwd, agentDir);
	const projectTrusted = await trusted(cwd, agentDir, atStart.getDefaultProjectTrust());
	const settings = SettingsManager.create(cwd, agentDir, { projectTrusted });
	const runtime = await ModelRuntime.create({
		authPath: join(agentDir, "auth.json"),
		modelsPath: join(agentDir, "models.json"),
		modelsStorePath: join(agentDir, "models-store.json"),
		allowModelNetwork: false,
	});
	const model = runtime.getModel(provider, id);
	const known = { provider, id };
	return {
		trusted: projectTrusted,
		enabled: attempt(() => Boolean(settings.getCompactionEnabled())),
		reserve: attempt(() => settings.getCompactionReserveTokens(known)),
		keep: attempt(() => settings.getCompactionKeepRecentTokens(known)),
		sessionDir: attempt(() => atStart.getSettings().sessionDir),
		window: model?.contextWindow ?? null,
		maxTokens: model?.maxTokens ?? null,
		cost: model?.cost ?? null,
		faults: settings.drainErrors().length,
	};
}

for await (const line of createInterface({ input: process.stdin })) {
	console.log(JSON.stringify(await answer(JSON.parse(line))));
}
