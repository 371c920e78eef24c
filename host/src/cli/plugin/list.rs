//! `plugin list`

use std::path::Path;

use serde_json::{Value, json};

use crate::installed::{Installed, InstalledError, Pin, digest};
use crate::shipped::SHIPPED;

use crate::cli::control::status::failed as words;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::Out;
use crate::cli::quarantine;
use crate::config::Config;
use crate::wire::control::PluginStatus;
use crate::wire::quarantine::Quarantine;

/// An installed plugin, and what is wrong with it.
type Row = (String, Pin, Option<InstalledError>);

pub(super) fn run(config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
    let failed = failed(config);
    let rows = rows(&super::installed()?).map_err(Failure::problem)?;
    if out.json {
        let shipped =
            SHIPPED.iter().map(|(name, bytes)| json!({ "name": name, "from": "shipped", "sha256": digest(bytes) }));
        let all = shipped.chain(rows.iter().map(in_json)).map(|row| with_failed(row, &failed));
        out.line(Value::Array(all.collect()))?;
    } else {
        in_words(out, &rows, &failed)?;
    }
    Ok(if rows.iter().all(|(_, _, fault)| fault.is_none()) { Outcome::Done } else { Outcome::Problems })
}

fn rows(installed: &Installed) -> Result<Vec<Row>, InstalledError> {
    let row = |(name, pin): (String, Pin)| match installed.open(&name) {
        Ok((_, pin)) => (name, pin, None),
        Err(fault) => (name, pin, Some(fault)),
    };
    Ok(installed.list()?.into_iter().map(row).collect())
}

fn in_json((name, pin, fault): &Row) -> Value {
    json!({
        "name": name, "from": "installed", "version": pin.version, "sha256": pin.sha256, "grants": pin.grants,
        "source": pin.from, "fault": fault.as_ref().map(ToString::to_string),
    })
}

/// What failed of plugins, where that can be learned: the list is worth having without a daemon and a store, too.
fn failed(config: Option<&Path>) -> Quarantine {
    Config::find(config).ok().and_then(|config| quarantine::ask(&config).ok()).unwrap_or_default()
}

fn status(name: &str, failed: &Quarantine) -> PluginStatus {
    let (retrying, quarantined) = failed.counts(name);
    let suspended = failed.suspended_where(name);
    PluginStatus { name: name.to_owned(), suspended, retrying, quarantined, ..PluginStatus::default() }
}

fn with_failed(mut row: Value, failed: &Quarantine) -> Value {
    let status = status(row["name"].as_str().unwrap_or_default(), failed);
    row["suspended"] = status.suspended.into();
    row["retrying"] = status.retrying.into();
    row["quarantined"] = status.quarantined.into();
    row
}

fn say_failed(out: &mut Out, name: &str, failed: &Quarantine) -> std::io::Result<()> {
    match words(&status(name, failed)) {
        Some(words) => out.line(format!("  {words}; see `pi-graft quarantine list`")),
        None => Ok(()),
    }
}

fn in_words(out: &mut Out, rows: &[Row], failed: &Quarantine) -> std::io::Result<()> {
    for (name, _) in SHIPPED {
        out.row(&format!("{name:<24} shipped"))?;
        say_failed(out, name, failed)?;
    }
    for (name, pin, fault) in rows {
        let may = if pin.grants.is_empty() { "nothing".to_owned() } else { pin.grants.join(", ") };
        out.row(&format!("{name:<24} {:<10} may be granted {may}", pin.version))?;
        if let Some(fault) = fault {
            out.line(format!("  not usable: {fault}"))?;
        }
        say_failed(out, name, failed)?;
    }
    Ok(())
}
