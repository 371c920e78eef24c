//! What the guest sees, for tests to look at.
use pi_graft_plugin::serde::{self, Serialize};
use pi_graft_plugin::{Info, Json, Level, Result, Run};

/// What it sees.
#[derive(Debug, Serialize)]
#[serde(crate = "self::serde")]
struct Report {
    trigger: String,
    leaf: String,
    /// In the context, and with what is pending.
    tokens: (u64, u64),
    plan: bool,
    branch: Vec<String>,
    projection: usize,
}

/// Puts it into a `custom` of this type, or into the log.
pub fn report(run: &Run, kind: &str) -> Result {
    let tokens = run.context_tokens();
    let report = Report {
        trigger: name(&run.trigger()),
        leaf: name(&run.leaf()),
        tokens: (tokens.in_file, tokens.with_pending),
        plan: run.compaction_plan(None, Some(1)).is_some(),
        branch: run.branch().map(|info| name(&info)).collect(),
        projection: run.projection().count(),
    };
    if kind == "log" {
        run.log(Level::Info, Json::of(&report)?.as_str());
        return Ok(());
    }
    Ok(run.append_custom(kind, &report)?)
}

/// Such as `a1 message/user`, `? custom/todo pending by first`.
fn name(info: &Info) -> String {
    let mut name = [info.id.as_deref().unwrap_or("?"), " ", &info.kind].concat();
    for sub in [&info.role, &info.custom_type].into_iter().flatten() {
        name.push('/');
        name.push_str(sub);
    }
    if info.pending {
        name.push_str(" pending");
    }
    if info.shown != "as-is" && info.shown != "none" {
        name.push(' ');
        name.push_str(&info.shown);
    }
    if let Some(plugin) = &info.grafted_by {
        name.push_str(" by ");
        name.push_str(plugin);
    }
    name
}
