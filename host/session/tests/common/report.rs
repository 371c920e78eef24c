//! What we make of a session, in the shape of the oracle's answer, and where the two differ.

use std::sync::Arc;

use pi_session::branch::BranchError;
use pi_session::compaction::{Plan, PlanSettings};
use pi_session::context::Context;
use pi_session::finding::Finding;
use pi_session::header::Version;
use pi_session::json::{Json, Kind};
use pi_session::tree::{EntryIx, Leaf, Status};
use pi_session::{Branch, Tree};

use super::js::Js;

/// What was there to compare.
#[derive(Debug, Default, Clone, Copy)]
pub struct Answer {
    pub leaves: u64,
    pub plans: u64,
    /// Leaves at which Pi throws, or that lie on a cycle.
    pub broken_in_pi: u64,
}

/// Reads the session and compares with what Pi said of it; the error names the first difference.
pub fn compare(session: &[u8], pi: &Js, keep: u64) -> Result<Answer, String> {
    let tree = Arc::new(Tree::from_bytes(session));
    if is_error(pi.get("loadError")) {
        return match tree.status() {
            // What is no object in a file of version 1 (S2.2, S11.1).
            Status::Session if tree.problems().iter().any(|problem| problem.finding == Finding::OldValue) => {
                Ok(Answer::default())
            }
            Status::Session => {
                Err(format!("Pi does not open it ({}), we do", pi.get("loadError").expect("seen above").canonical()))
            }
            _ => Ok(Answer::default()),
        };
    }
    let ours = Ours { source: Arc::new(session.to_vec()), tree, keep };
    if ours.tree.status() == Status::NotBegun {
        return same("entries of a session not yet begun", &Js::List(Vec::new()), pi.get("entryIds"));
    }
    ours.compare_file(pi)?;
    let mut answer = Answer::default();
    for leaf in pi.get("leaves").expect("the oracle reports leaves").items() {
        ours.compare_leaf(leaf, &mut answer)?;
    }
    Ok(answer)
}

fn is_error(value: Option<&Js>) -> bool {
    value.is_some_and(|v| *v != Js::Null)
}

/// The one comparison: texts of both sides after JavaScript's number rules.
fn same(what: &str, ours: &Js, pi: Option<&Js>) -> Result<Answer, String> {
    let (ours, pi) = (ours.canonical(), pi.unwrap_or(&Js::Null).canonical());
    if ours == pi {
        return Ok(Answer::default());
    }
    let at = ours.bytes().zip(pi.bytes()).take_while(|(a, b)| a == b).count();
    let near = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(60).min(text.len())..text.len().min(at + 200)])
            .into_owned()
    };
    Err(format!("{what} differ at {at}\n  ours: …{}\n  Pi:   …{}", near(&ours), near(&pi)))
}

struct Ours {
    tree: Arc<Tree>,
    source: Arc<Vec<u8>>,
    keep: u64,
}

impl Ours {
    /// The id of an entry as the oracle names it: those that Pi gives to old files are counted.
    fn id(&self, ix: EntryIx) -> String {
        match self.tree.header().map(|header| header.version) {
            Some(Version::V1) => format!("gen-{:04}", ix.index() + 1),
            _ => self.tree.id(ix).to_owned(),
        }
    }

    fn compare_file(&self, pi: &Js) -> Result<(), String> {
        let with_ids: Vec<_> =
            pi.get("entryIds").map(Js::items).unwrap_or_default().iter().filter(|id| has_id(id)).cloned().collect();
        let ids: Vec<_> = self.tree.all().map(|ix| Js::text(&self.id(ix))).collect();
        same("entry ids", &Js::List(ids), Some(&lossy(&Js::List(with_ids))))?;
        let leaf = match self.tree.leaf() {
            Leaf::At(ix) => Js::text(&self.id(ix)),
            Leaf::None | Leaf::NoId => Js::Null,
        };
        same("leaf", &leaf, pi.get("leafId").filter(|id| has_id(id)).map(lossy).as_ref())?;
        same("session id", &Js::maybe(self.tree.header().map(|h| h.id.as_str())), pi.get("sessionId"))?;
        self.compare_names(pi)?;
        self.compare_roots(pi)
    }

    fn compare_names(&self, pi: &Js) -> Result<(), String> {
        let name = pi.get("sessionName");
        if name.and_then(|n| n.get("$error")).is_none() {
            same("session name", &Js::maybe(self.tree.name()), name.map(lossy).as_ref())?;
        }
        // A label that is no text is shown as its JSON.
        let text = |label: &Js| Js::text(&label.as_text().unwrap_or_else(|| label.canonical()));
        // What is labelled is an entry: one of another name is nobody's.
        let is_there = |target: &[u16]| {
            !ODD_TARGETS.contains(&&*String::from_utf16_lossy(target))
                && self.tree.by_id(&String::from_utf16_lossy(target)).is_some()
        };
        let texts = |labels: &Js| match labels {
            Js::Object(members) => Js::Object(
                members
                    .iter()
                    .filter(|(t, _)| is_there(t))
                    .map(|(target, label)| (target.clone(), text(label)))
                    .collect(),
            ),
            other => other.clone(),
        };
        let spelled = |label: &str| match Json::parse(label.as_bytes()) {
            Ok(json) if json.kind() != Kind::String => Js::text(&Js::parse(label.as_bytes()).canonical()),
            _ => Js::text(label),
        };
        let labels: Vec<_> =
            self.tree.labels().map(|(id, label)| (id.encode_utf16().collect::<Vec<_>>(), spelled(label))).collect();
        let labels = Js::Object(labels.into_iter().filter(|(target, _)| is_there(target)).collect());
        same("labels", &lossy(&labels), pi.get("labels").map(|l| lossy(&texts(l))).as_ref()).map(drop)
    }

    fn compare_roots(&self, pi: &Js) -> Result<(), String> {
        let Some(Js::List(roots)) = pi.get("treeRootIds") else { return Ok(()) };
        // To Pi an entry without an id is the parent of every entry without a parent (S2.2).
        if pi.get("entryIds").is_some_and(|ids| !ids.items().iter().all(has_id)) {
            return Ok(());
        }
        let with_ids: Vec<_> = roots.iter().filter(|id| has_id(id)).cloned().collect();
        let ours: Vec<_> = self.tree.roots().map(|ix| Js::text(&self.id(ix))).collect();
        same("roots", &Js::List(ours), Some(&lossy(&Js::List(with_ids)))).map(drop)
    }

    fn compare_leaf(&self, pi: &Js, answer: &mut Answer) -> Result<(), String> {
        let Some(id) = pi.get("leafId").filter(|id| has_id(id)).and_then(Js::as_text) else { return Ok(()) };
        let at = |what: String| format!("at leaf {id}: {what}");
        let ix = self.tree.all().rfind(|ix| self.id(*ix) == id);
        let branch = match Branch::at(&self.tree, self.source.clone(), ix) {
            Ok(branch) => branch,
            Err(BranchError::Cycle(_)) if pi.get("parentCycle").is_some() => {
                answer.broken_in_pi += 1;
                return Ok(());
            }
            Err(error) => return Err(at(error.to_string())),
        };
        // To Pi a number may be an id, and a path leads over it (S4.2).
        let is_odd = |ids: &Js| !ids.items().iter().all(has_id);
        if pi.get("branchIds").is_some_and(is_odd) {
            return Ok(());
        }
        if pi.get("parentCycle").is_some() {
            return Err(at("Pi sees a cycle, we do not".to_owned()));
        }
        self.compare_context(&branch, pi, answer).map_err(at)
    }

    fn compare_context(&self, branch: &Branch, pi: &Js, answer: &mut Answer) -> Result<(), String> {
        let context = branch.context();
        let ids = |places: Vec<u32>| Js::List(places.into_iter().map(|place| self.id_at(branch, place)).collect());
        answer.leaves += 1;
        same("branch", &ids((0..branch.len()).collect()), pi.get("branchIds").map(lossy).as_ref())?;
        if pi.get("contextEntryIds").and_then(|ids| ids.get("$error")).is_none() {
            same(
                "context entries",
                &ids(context.entries.iter().map(|e| e.place).collect()),
                pi.get("contextEntryIds").map(lossy).as_ref(),
            )?;
        }
        if is_error(pi.get("projectionError")) {
            answer.broken_in_pi += 1;
            return self.must_have_named_a_problem(branch, pi.get("projectionError"));
        }
        self.compare_projection(branch, &context, pi)?;
        self.compare_settings(branch, pi)?;
        self.compare_tokens(branch, &context, pi, answer)
    }

    /// Where Pi throws, we say so.
    fn must_have_named_a_problem(&self, branch: &Branch, error: Option<&Js>) -> Result<(), String> {
        let told = branch.items().any(|item| item.facts.breaks);
        let error = error.map(Js::canonical).unwrap_or_default();
        if told { Ok(()) } else { Err(format!("Pi throws here, and no problem was reported: {error}")) }
    }

    fn id_at(&self, branch: &Branch, place: u32) -> Js {
        let id = branch.item(place).id.expect("nothing is pending");
        Js::text(&self.id(self.tree.by_id(id).expect("an id of the branch is in the tree")))
    }

    fn compare_projection(&self, branch: &Branch, context: &Context, pi: &Js) -> Result<(), String> {
        let mut messages = Vec::new();
        let mut projection = Vec::new();
        for entry in &context.entries {
            let own = branch.messages(entry).map_err(|error| error.to_string())?;
            let own: Vec<_> = own.iter().map(|message| Js::parse(message.as_bytes())).collect();
            projection.push(Js::List(own.clone()));
            messages.extend(own);
        }
        let theirs = pi.get("projection").expect("the oracle projects").items();
        let theirs = theirs.iter().map(|entry| entry.get("messages").cloned().unwrap_or(Js::Null)).collect();
        same("projections", &Js::List(projection), Some(&Js::List(theirs)))?;
        same("messages", &Js::List(messages), pi.get("messages")).map(drop)
    }

    fn compare_settings(&self, branch: &Branch, pi: &Js) -> Result<(), String> {
        let level = branch.thinking_level().map_err(|error| error.to_string())?;
        same("thinking levels", &lossy(&Js::parse(level.as_bytes())), pi.get("thinkingLevel").map(lossy).as_ref())?;
        let model = branch.model().map_err(|error| error.to_string())?;
        let model = model.map_or(Js::Null, |model| {
            let named = [("provider", model.provider), ("modelId", model.model)];
            Js::object(named.into_iter().filter_map(|(name, text)| Some((name, Js::parse(text?.as_bytes())))).collect())
        });
        same("models", &lossy(&model), pi.get("model").map(lossy).as_ref()).map(drop)
    }

    fn compare_tokens(&self, branch: &Branch, context: &Context, pi: &Js, answer: &mut Answer) -> Result<(), String> {
        let estimates = pi.get("messageTokens").expect("the oracle estimates").items();
        if estimates.iter().any(|tokens| !matches!(tokens, Js::Number(_))) {
            answer.broken_in_pi += 1;
            return self.must_have_named_a_problem(branch, pi.get("messageTokens"));
        }
        let counted = same(
            "tokens of the entries",
            &self.tokens_by_entry(branch, context),
            Some(&tokens_by_entry(pi, estimates)),
        );
        if counted.is_err() && is_wild(branch) {
            // What is malformed may have a length for JavaScript: a list, an object with that name.
            answer.broken_in_pi += 1;
            return Ok(());
        }
        counted?;
        let tokens = branch.tokens(context).map_err(|error| error.to_string())?;
        let estimate = pi.get("contextEstimate").expect("the oracle estimates");
        let counted = same("context tokens", &Js::Number(tokens.total), estimate.get("tokens"));
        if counted.is_err() && is_wild(branch) {
            answer.broken_in_pi += 1;
            return Ok(());
        }
        counted?;
        same("usage tokens", &Js::Number(tokens.usage), estimate.get("usageTokens"))?;
        same("trailing tokens", &Js::number(tokens.trailing), estimate.get("trailingTokens"))?;
        let from_usage = estimate.get("lastUsageIndex").is_some_and(|at| *at != Js::Null);
        same("whether usage counts", &Js::Bool(tokens.usage_at.is_some()), Some(&Js::Bool(from_usage)))?;
        self.compare_plan(branch, pi, answer)
    }

    fn tokens_by_entry(&self, branch: &Branch, context: &Context) -> Js {
        Js::List(context.entries.iter().map(|entry| Js::number(branch.shown_tokens(entry))).collect())
    }

    fn compare_plan(&self, branch: &Branch, pi: &Js, answer: &mut Answer) -> Result<(), String> {
        let settings = PlanSettings { keep_recent: self.keep, ..PlanSettings::default() };
        let plan = branch.plan(&settings).map_err(|error| error.to_string())?;
        let preparation = pi.get("preparation").expect("the oracle prepares");
        if preparation.get("$error").is_some() {
            answer.broken_in_pi += 1;
            return self.must_have_named_a_problem(branch, Some(preparation));
        }
        answer.plans += u64::from(plan.is_some());
        let ours = plan.as_ref().map_or(Js::Null, |plan| self.plan_of(branch, plan));
        let keys = [
            "firstKeptEntryId",
            "isSplitTurn",
            "tokensBefore",
            "previousSummary",
            "nMessagesToSummarize",
            "nTurnPrefix",
        ];
        let theirs = match preparation {
            Js::Object(_) => {
                let mut members: Vec<_> =
                    keys.iter().filter_map(|key| Some((*key, preparation.get(key)?.clone()))).collect();
                members.push(("fileLists", texts_only(preparation.get("fileLists").unwrap_or(&Js::Null))));
                Js::object(members)
            }
            other => other.clone(),
        };
        same("plans", &sorted(&lossy(&ours)), Some(&sorted(&lossy(&theirs)))).map(drop)
    }

    fn plan_of(&self, branch: &Branch, plan: &Plan) -> Js {
        let summary = plan.previous_summary.as_ref().map_or(Js::Null, |text| Js::parse(text.as_bytes()));
        let texts = |list: &[String]| Js::texts(list.iter().map(String::as_str));
        Js::object(vec![
            ("firstKeptEntryId", self.id_at(branch, plan.first_kept_place)),
            ("isSplitTurn", Js::Bool(plan.split_turn)),
            ("tokensBefore", Js::Number(plan.tokens_before)),
            ("previousSummary", summary),
            ("nMessagesToSummarize", Js::number(plan.to_summarize.len() as u64)),
            ("nTurnPrefix", Js::number(plan.turn_prefix.len() as u64)),
            (
                "fileLists",
                Js::object(vec![
                    ("readFiles", texts(&plan.read_files)),
                    ("modifiedFiles", texts(&plan.modified_files)),
                ]),
            ),
        ])
    }
}

/// What JavaScript makes of a target that is no text, and what a wild entry may be called.
const ODD_TARGETS: [&str; 3] = ["null", "undefined", "0"];

/// Something on it is malformed, so that Pi may go on with what is no number, or take a text for a list.
fn is_wild(branch: &Branch) -> bool {
    branch.items().any(|item| item.facts.breaks)
}

/// Pi's estimates of the messages, summed by the entry that gives them.
fn tokens_by_entry(pi: &Js, estimates: &[Js]) -> Js {
    let mut estimates = estimates.iter().map(|tokens| if let Js::Number(n) = tokens { *n } else { 0.0 });
    let entries = pi.get("projection").expect("the oracle projects").items().iter();
    let messages = entries.map(|entry| entry.get("messages").map_or(0, |messages| messages.items().len()));
    Js::List(messages.map(|count| Js::Number(estimates.by_ref().take(count).sum())).collect())
}

/// Compares the replay of the system messages before the leaf with the one that Pi puts into a compaction (S6.2).
pub fn compare_replay(session: &[u8], appended: &Js) -> Result<(), String> {
    let tree = Arc::new(Tree::from_bytes(session));
    let entry = appended.get("results").and_then(|results| results.items().first()?.get("entry"));
    let (Some(entry), Ok(branch)) = (entry, Branch::of_leaf(&tree, Arc::new(session.to_vec()))) else { return Ok(()) };
    if tree.leaf() == Leaf::NoId || is_wild(&branch) {
        return Ok(());
    }
    let replay = branch.system(&branch.context()).map_err(|error| error.to_string())?;
    let ours = replay.message(Some(0)).map_or(Js::Null, |message| without_time(&Js::parse(message.as_bytes())));
    same("system replays", &lossy(&ours), entry.get("systemMessage").map(without_time).map(|m| lossy(&m)).as_ref())
        .map(drop)
}

fn without_time(message: &Js) -> Js {
    let Js::Object(members) = message else { return message.clone() };
    Js::Object(
        members
            .iter()
            .filter(|(key, _)| String::from_utf16_lossy(key) != "timestamp")
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    )
}

/// Pi carries what is no path in the lists of the compaction before; here it is left out (S10.5).
fn texts_only(lists: &Js) -> Js {
    match lists {
        Js::Object(members) => {
            Js::Object(members.iter().map(|(name, list)| (name.clone(), texts_only(list))).collect())
        }
        Js::List(items) => Js::List(items.iter().filter(|item| matches!(item, Js::Text(_))).cloned().collect()),
        other => other.clone(),
    }
}

/// A plan's file lists in one order where a path is not Unicode: what reads as U+FFFD here has its own place in Pi.
fn sorted(value: &Js) -> Js {
    match value {
        Js::Object(members) => Js::Object(members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect()),
        Js::List(items) if value.canonical().contains('\u{fffd}') => {
            let mut items = items.clone();
            items.sort_by_key(Js::canonical);
            Js::List(items)
        }
        other => other.clone(),
    }
}

/// Entries without an id are in Pi's list, not in our tree (S2.2).
fn has_id(id: &Js) -> bool {
    matches!(id, Js::Text(units) if !units.is_empty())
}

/// Rust's strings hold no lone surrogates: where we decode, they read as U+FFFD on both sides.
fn lossy(value: &Js) -> Js {
    match value {
        Js::Text(units) => Js::text(&String::from_utf16_lossy(units)),
        Js::List(items) => Js::List(items.iter().map(lossy).collect()),
        Js::Object(members) => Js::Object(members.iter().map(|(key, value)| (key.clone(), lossy(value))).collect()),
        other => other.clone(),
    }
}
