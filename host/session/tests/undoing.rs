//! A plugin's work taken back: the context is, message by message, that of the same session without its edits and messages,
//! by our own reading and by the real Pi's (product 4.5, S7).

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::generate;
use common::generate::value::Rng;
use common::js::Js;
use common::oracle::Oracle;
use common::scene::{NOW_MS, Scene, compaction, counter, message_draft, omit, replace};
use pi_session::Branch;
use pi_session::compose::compose_parts;
use pi_session::draft::Draft;
use pi_session::entry::EntryKind;
use pi_session::json::Json;
use pi_session::receipt::Receipt;
use pi_session::undo::{HANDLER, To, Undo, undo};

fn reading() -> Scene {
    Scene::new(
        "u1 user: my password is x
         a1 assistant calls c1: I shall
         r1 result c1: a long text
         a2 assistant: done",
    )
}

fn receipt(scene: &Scene, plugin: &str, handler: &str) -> Receipt {
    let trigger = scene.branch().leaf_id().unwrap_or_default().to_owned();
    Receipt { batch: "b".into(), plugin: plugin.into(), handler: handler.into(), trigger, ..Receipt::default() }
}

/// The scene with what a run of this plugin proposes.
fn graft(scene: &Scene, plugin: &str, drafts: &[Draft]) -> Scene {
    let composed = scene.compose(&scene.accept(drafts), Some(&receipt(scene, plugin, "on-entry")));
    scene.with(&composed.expect("it may stand"))
}

/// The scene with what an undo writes.
fn with(scene: &Scene, plugin: &str, done: &Undo) -> Scene {
    let mut made = || receipt(scene, plugin, HANDLER);
    let composed = compose_parts(&scene.branch(), &done.accepted, &mut made, 3, NOW_MS, &mut counter());
    scene.with(&composed.expect("it may stand"))
}

fn undone(scene: &Scene, plugin: &str) -> Scene {
    with(scene, plugin, &undo(&scene.branch(), plugin).expect("memory reads"))
}

#[test]
fn what_was_edited_is_itself_again_and_what_was_said_is_gone() {
    let scene = graft(&reading(), "p", &[replace("u1", "\"SECRET\""), message_draft("I took something out")]);
    let scene = graft(&scene.and("u2 user: go on"), "p", &[omit("u2")]);
    assert!(
        scene.context().contains("SECRET") && scene.context().contains("I took") && !scene.context().contains("go on")
    );
    let done = undo(&scene.branch(), "p").expect("memory reads");
    let to: Vec<_> = done.changes.iter().map(|change| (change.target.as_str(), &change.to)).collect();
    assert_eq!(to, [("u1", &To::Itself), (to[1].0, &To::Nothing), ("u2", &To::Itself)]);
    assert!(done.is_news && done.refused.is_empty() && done.compactions.is_empty());
    assert_eq!(with(&scene, "p", &done).context(), reading().and("u2 user: go on").context());
}

#[test]
fn a_second_undo_finds_nothing_to_do() {
    let scene = undone(&graft(&reading(), "p", &[replace("u1", "\"SECRET\"")]), "p");
    let again = undo(&scene.branch(), "p").expect("memory reads");
    assert!(again.accepted.is_empty() && again.changes.is_empty() && again.refused.is_empty() && !again.is_news);
    let nobody = undo(&scene.branch(), "q").expect("memory reads");
    assert!(nobody.accepted.is_empty() && !nobody.is_news);
}

#[test]
fn what_others_did_to_the_same_entry_stays_in_effect() {
    let others = graft(&reading(), "q", &[replace("u1", "\"by q\"")]);
    let scene = graft(&others, "p", &[replace("u1", "\"by p\"")]);
    let done = undo(&scene.branch(), "p").expect("memory reads");
    assert!(matches!(&done.changes[0].to, To::Edit(id) if scene.text.contains(id.as_str())), "{:?}", done.changes);
    let scene = with(&scene, "p", &done);
    assert_eq!(scene.context(), others.context());
    // And once that is taken back too, neither of them is to be seen.
    assert_eq!(undone(&scene, "q").context(), reading().context());

    let later = graft(&graft(&reading(), "p", &[replace("u1", "\"by p\"")]), "q", &[omit("u1")]);
    let done = undo(&later.branch(), "p").expect("memory reads");
    assert!(done.accepted.is_empty() && done.is_news, "what shows is by q already; that p is undone is to be kept");
    assert_eq!(undone(&with(&later, "p", &done), "q").context(), reading().context());
}

#[test]
fn a_call_and_its_result_come_back_together() {
    let scene = graft(&reading(), "p", &[omit("a1"), omit("r1")]);
    assert_eq!(undone(&scene, "p").context(), reading().context());
}

#[test]
fn a_compaction_stays_and_what_it_hides_needs_no_edit() {
    let scene = graft(&reading(), "p", &[replace("u1", "\"SECRET\""), message_draft("told")]);
    let scene = graft(&scene.and("u2 user: go on"), "p", &[replace("u2", "\"GO\""), compaction(Some("u2"))]);
    let done = undo(&scene.branch(), "p").expect("memory reads");
    let targets: Vec<_> = done.changes.iter().map(|change| change.target.as_str()).collect();
    assert_eq!((targets, done.hidden), (vec!["u2"], 2));
    let [cut] = &done.compactions[..] else { panic!("{:?}", done.compactions) };
    let branch = scene.branch();
    let place = |id: &str| branch.place_of(id).expect("on the branch");
    assert_eq!(place(cut.before.as_deref().expect("an entry")), place("u2"), "before its receipt");
    assert_eq!(branch.facts(place(&cut.id)).kind, EntryKind::Compaction);
    assert_eq!(with(&scene, "p", &done).context(), "compactionSummary: what was before\nuser: go on");
}

#[test]
fn what_an_edit_cannot_give_back_is_told_and_the_rest_is_done() {
    let odd = r#"[{"type":"video","url":"x"}]"#;
    let line = format!(
        r#"{{"type":"message","id":"u9","parentId":"a2","timestamp":"2026-01-01T00:01:00.000Z","message":{{"role":"user","content":{odd},"timestamp":1}}}}"#
    );
    let scene = Scene { text: format!("{}{line}\n", reading().text) };
    let scene = graft(&scene, "p", &[omit("u9"), replace("u1", "\"SECRET\"")]);
    let done = undo(&scene.branch(), "p").expect("memory reads");
    let [(change, refusal)] = &done.refused[..] else { panic!("{:?}", done.refused) };
    assert_eq!((change.target.as_str(), refusal.rule.as_str()), ("u9", "S12.3"));
    assert_eq!(with(&scene, "p", &done).context(), reading().context());
}

#[test]
fn many_edits_stand_behind_several_receipts() {
    let talk: String = (1..=10).map(|n| format!("u{n} user: {n}\n")).collect();
    let scene = Scene::new(&talk);
    let edits: Vec<_> = (1..=10).map(|n| replace(&format!("u{n}"), "\"cut\"")).collect();
    let done = undone(&graft(&scene, "p", &edits), "p");
    assert_eq!(done.context(), scene.context());
    let found = pi_session::receipt::receipts(&done.branch(), None).expect("memory reads");
    let of: Vec<_> = found.iter().filter(|found| found.receipt.handler == HANDLER).collect();
    assert_eq!(of.iter().map(|found| found.receipt.entries).collect::<Vec<_>>(), [3, 3, 3, 1]);
    assert!(of.iter().all(|found| found.complete));
}

/// Random sessions, grafts of three plugins, edits and compactions of others among them; then plugin after plugin is undone.
#[test]
fn after_each_undo_of_a_random_tree_the_context_is_that_without_the_plugin() {
    common::deep(|| {
        let mut oracle = Oracle::start();
        let (mut undos, mut refused) = (0, 0);
        let sessions = number("UNDO_SESSIONS", 100);
        for seed in 1..=sessions {
            let Some(mut story) = Story::begin(seed) else { continue };
            for plugin in ["p", "q", "p", "r"] {
                story.go_on();
                story.undo(plugin, oracle.as_mut());
                (undos, refused) = (undos + 1, refused + story.refused.len());
            }
        }
        eprintln!("{undos} undos, {refused} entries that no edit could give back, by Pi: {}", oracle.is_some());
        assert!(undos >= sessions, "the generator must make sessions to undo in");
    });
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// A random session that grows.
struct Story {
    seed: u64,
    rng: Rng,
    scene: Scene,
    count: u32,
    /// The edits and messages that are to count no more.
    out: BTreeSet<String>,
    /// What no edit could give back.
    refused: BTreeSet<String>,
}

impl Story {
    fn begin(seed: u64) -> Option<Story> {
        let text = String::from_utf8(generate::session(seed)).ok().filter(|text| text.ends_with('\n'))?;
        let scene = Scene { text };
        scene.try_branch()?.leaf_id()?;
        let mut story = Story {
            seed,
            rng: Rng::new(seed.wrapping_mul(77)),
            scene,
            count: 0,
            out: BTreeSet::new(),
            refused: BTreeSet::new(),
        };
        // A session of another version, or with an id that nothing can hang on, takes no grafts.
        story.graft(None, vec![message_draft("begun")]).then_some(story)
    }

    fn id(&mut self) -> String {
        self.count += 1;
        format!("story{}", self.count)
    }

    fn go_on(&mut self) {
        for _ in 0..self.rng.below(12) + 3 {
            let plugin = self.rng.pick(&["p", "q", "r"]);
            match self.rng.below(10) {
                0 | 1 => self.say(),
                2 => drop(self.some_edits(None)),
                3 => drop(self.graft(Some(plugin), vec![message_draft("told")])),
                4 => self.compact(plugin),
                _ => drop(self.some_edits(Some(plugin))),
            }
        }
    }

    fn say(&mut self) {
        let (user, assistant, result, call) = (self.id(), self.id(), self.id(), self.id());
        self.scene = self.scene.and(&format!(
            "{user} user: please\n{assistant} assistant calls {call}: I shall\n{result} result {call}: a text"
        ));
    }

    fn ids(&self) -> Vec<String> {
        self.scene.branch().items().filter_map(|item| item.id.map(str::to_owned)).collect()
    }

    /// Edits of a few neighbours, judged as one list: so calls and results go together now and then.
    fn some_edits(&mut self, plugin: Option<&str>) -> bool {
        let ids = self.ids();
        let (first, many) = (self.rng.below(ids.len() as u32) as usize, self.rng.below(5) as usize + 1);
        let mut edits = Vec::new();
        // Whoever edits a message that was taken back shows it again, and that is new work of theirs.
        for id in ids.iter().skip(first).take(many).filter(|id| !self.out.contains(*id)) {
            let text = format!("\"edit {}\"", self.rng.below(3));
            edits.push(if self.rng.per_mille(500) { omit(id) } else { replace(id, &text) });
        }
        self.graft(plugin, edits)
    }

    /// As Pi plans it: what one compaction hides, no later one shows again.
    fn compact(&mut self, plugin: &str) {
        let branch = self.scene.branch();
        let from = branch.last_compaction().map_or(0, |place| place as usize + 1);
        let ids = self.ids().split_off(from);
        if self.rng.per_mille(400) && !ids.is_empty() {
            let kept = ids[self.rng.below(ids.len() as u32) as usize].clone();
            let by = self.rng.per_mille(500).then_some(plugin);
            self.graft(by, vec![compaction(Some(&kept))]);
        }
    }

    /// Appends what of this may stand: behind a receipt, if a plugin does it.
    fn graft(&mut self, plugin: Option<&str>, drafts: Vec<Draft>) -> bool {
        let mut judge = self.scene.judge();
        let (edits, others): (Vec<_>, Vec<_>) =
            drafts.into_iter().partition(|draft| matches!(draft, Draft::ContextEdit { .. }));
        let _ = judge.edits(edits);
        others.into_iter().for_each(|draft| drop(judge.propose(draft)));
        let accepted = judge.finish();
        let receipt = plugin.map(|plugin| receipt(&self.scene, plugin, "on-entry"));
        match self.scene.compose(&accepted, receipt.as_ref()) {
            Ok(composed) if !accepted.is_empty() => {
                self.scene = self.scene.with(&composed);
                true
            }
            _ => false,
        }
    }

    fn undo(&mut self, plugin: &str, oracle: Option<&mut Oracle>) {
        let branch = self.scene.branch();
        let found = pi_session::receipt::receipts(&branch, None).expect("memory reads");
        for graft in found.iter().filter(|found| found.receipt.plugin == plugin || found.receipt.handler == HANDLER) {
            let items = graft.places().map(|place| branch.item(place));
            let counts = |kind| matches!(kind, EntryKind::ContextEdit | EntryKind::CustomMessage);
            self.out.extend(items.filter(|item| counts(item.facts.kind)).filter_map(|item| item.id.map(str::to_owned)));
        }
        let done = undo(&branch, plugin).expect("memory reads");
        self.refused.extend(done.refused.iter().map(|(change, _)| change.target.clone()));
        let before = self.scene.text.len();
        self.scene = with(&self.scene, plugin, &done);
        self.out.extend(edits_in(&self.scene.text[before..]));
        let again = undo(&self.scene.branch(), plugin).expect("memory reads");
        assert!(again.accepted.is_empty() && !again.is_news, "seed {}: a second undo finds {again:?}", self.seed);
        self.compare(plugin, oracle);
    }

    /// The same session without what is to count no more.
    fn without(&self) -> Scene {
        let mut text = String::new();
        let mut gone: Vec<(String, String)> = Vec::new();
        for line in self.scene.text.lines() {
            let member = |name: &str| Some(Json::parse(line.as_bytes()).ok()?.get(name)?.as_str()?.into_owned());
            let parent = member("parentId").unwrap_or_default();
            let heir = |id: &str| gone.iter().find(|(known, _)| known == id).map(|(_, heir)| heir.clone());
            let parent = heir(&parent).unwrap_or(parent);
            match member("id").filter(|id| self.out.contains(id)) {
                Some(id) => gone.push((id, parent)),
                None => text += &(renamed(line, "parentId", &heir) + "\n"),
            }
        }
        Scene { text: self.with_kept(text) }
    }

    /// Where a compaction keeps from something that is gone, it keeps from what comes next.
    fn with_kept(&self, text: String) -> String {
        let order: Vec<String> = ids_of(&self.scene.text);
        let next = |id: &str| {
            let at = order.iter().position(|known| known == id).filter(|_| self.out.contains(id))?;
            order[at..].iter().find(|id| !self.out.contains(*id)).cloned()
        };
        text.lines().map(|line| renamed(line, "firstKeptEntryId", &next) + "\n").collect()
    }

    /// By our own reading, and by Pi's.
    fn compare(&self, plugin: &str, oracle: Option<&mut Oracle>) {
        let without = self.without();
        let (is, should) = (self.shown(&self.scene.branch()), self.shown(&without.branch()));
        assert_eq!(is, should, "seed {}, {plugin} undone:\n{}", self.seed, self.scene.text);
        let Some(oracle) = oracle else { return };
        let mut by_pi = |scene: &Scene| {
            let file = std::env::temp_dir().join(format!("undoing-{}.jsonl", std::process::id()));
            std::fs::write(&file, &scene.text).expect("the temporary directory can be written to");
            let shown = self.shown_by_pi(oracle, &file);
            let _ = std::fs::remove_file(&file);
            shown
        };
        let (is, should) = (by_pi(&self.scene), by_pi(&without));
        assert_eq!(is, should, "seed {}, {plugin} undone, by Pi:\n{}", self.seed, self.scene.text);
    }

    /// The messages of each entry of the context that gives some, but for those that no edit could give back.
    fn shown(&self, branch: &Branch) -> Vec<(String, Vec<String>)> {
        let of = |entry: &pi_session::context::ContextEntry| {
            let messages = branch.messages(entry).expect("memory reads");
            let id = branch.item(entry.place).id.unwrap_or_default().to_owned();
            (id, messages.iter().map(|message| plain(&Js::parse(message.as_bytes()))).collect())
        };
        self.counting(branch.context().entries.iter().map(of))
    }

    fn shown_by_pi(&self, oracle: &mut Oracle, file: &Path) -> Vec<(String, Vec<String>)> {
        let answer = oracle.dump(file, 50);
        let leaf = &answer.get("leaves").expect("leaves").items()[0];
        let projection = leaf.get("projection").map_or(&[][..], Js::items);
        let of = |entry: &Js| {
            let id = entry.get("sourceId").and_then(Js::as_text).unwrap_or_default();
            (id, entry.get("messages").map_or(&[][..], Js::items).iter().map(plain).collect())
        };
        self.counting(projection.iter().map(of))
    }

    fn counting(&self, entries: impl Iterator<Item = (String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
        entries.filter(|(id, messages)| !messages.is_empty() && !self.refused.contains(id)).collect()
    }
}

/// A message in one spelling. Text of an assistant or a tool is a block: as an edit stores it (S7.2).
fn plain(message: &Js) -> String {
    let role = message.get("role").and_then(Js::as_text);
    let key: Vec<u16> = "content".encode_utf16().collect();
    let mut message = message.clone();
    if let (Some("assistant" | "toolResult"), Js::Object(members)) = (role.as_deref(), &mut message)
        && let Some(content @ Js::Text(_)) = members.get_mut(&key)
    {
        let text = std::mem::replace(content, Js::Null);
        *content = Js::List(vec![Js::object(vec![("type", Js::text("text")), ("text", text)])]);
    }
    message.canonical()
}

fn ids_of(text: &str) -> Vec<String> {
    let id = |line: &str| Some(Json::parse(line.as_bytes()).ok()?.get("id")?.as_str()?.into_owned());
    text.lines().filter_map(id).collect()
}

/// The ids of the edits among these lines.
fn edits_in(text: &str) -> Vec<String> {
    ids_of(&text.lines().filter(|line| line.contains("\"context_edit\"")).collect::<Vec<_>>().join("\n"))
}

/// The line with another id at this member, where there is one for the id that stands there.
fn renamed(line: &str, member: &str, to: &dyn Fn(&str) -> Option<String>) -> String {
    let key = format!("\"{member}\":\"");
    let Some(at) = line.find(&key).map(|at| at + key.len()) else { return line.to_owned() };
    let Some(end) = line[at..].find('"').map(|end| at + end) else { return line.to_owned() };
    to(&line[at..end]).map_or_else(|| line.to_owned(), |id| format!("{}{id}{}", &line[..at], &line[end..]))
}
