//! `plugin list`

use serde_json::{Value, json};

use crate::installed::{Installed, InstalledError, Pin, digest};
use crate::shipped::SHIPPED;

use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::Out;

/// An installed plugin, and what is wrong with it.
type Row = (String, Pin, Option<InstalledError>);

pub(super) fn run(out: &mut Out) -> Result<Outcome, Failure> {
    let rows = rows(&super::installed()?).map_err(Failure::problem)?;
    if out.json {
        let shipped =
            SHIPPED.iter().map(|(name, bytes)| json!({ "name": name, "from": "shipped", "sha256": digest(bytes) }));
        out.line(Value::Array(shipped.chain(rows.iter().map(in_json)).collect()))?;
    } else {
        in_words(out, &rows)?;
    }
    Ok(if rows.iter().all(|(_, _, fault)| fault.is_none()) { Outcome::Done } else { Outcome::Problems })
}

fn rows(installed: &Installed) -> Result<Vec<Row>, InstalledError> {
    let all = installed.list()?.into_iter();
    Ok(all.map(|(name, pin)| (name.clone(), pin, installed.open(&name).err())).collect())
}

fn in_json((name, pin, fault): &Row) -> Value {
    json!({
        "name": name, "from": "installed", "version": pin.version, "sha256": pin.sha256, "grants": pin.grants,
        "source": pin.from, "fault": fault.as_ref().map(ToString::to_string),
    })
}

fn in_words(out: &mut Out, rows: &[Row]) -> std::io::Result<()> {
    for (name, _) in SHIPPED {
        out.row(&format!("{name:<24} shipped"))?;
    }
    for (name, pin, fault) in rows {
        let may = if pin.grants.is_empty() { "nothing".to_owned() } else { pin.grants.join(", ") };
        out.row(&format!("{name:<24} {:<10} may be granted {may}", pin.version))?;
        if let Some(fault) = fault {
            out.line(format!("  not usable: {fault}"))?;
        }
    }
    Ok(())
}
