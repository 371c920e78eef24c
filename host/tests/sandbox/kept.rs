//! A plugin of each published version of the contract, built once and kept: whoever compiled one then can use it now.
use std::fs;
use std::path::Path;

use pi_graft::sandbox::PluginSource;
use serde_json::json;

use super::common::{ALL, drafts, on_entry, sandbox, session, source};

#[test]
fn a_plugin_of_each_published_version_loads_reads_and_proposes() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/kept");
    let mut seen = 0;
    for entry in fs::read_dir(kept).expect("kept guests") {
        let path = entry.expect("an entry").path();
        let script = json!({"needs": ["append:custom"], "entry": [{"report": "seen", "must": true}]});
        let bytes = fs::read(&path).expect("a guest");
        let plugin = sandbox().load(PluginSource { bytes, ..source("old", &ALL, &script) });
        let plugin = plugin.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(drafts(plugin.run(on_entry(&session(&["u1", "a2", "u3"])))).len(), 1, "{}", path.display());
        seen += 1;
    }
    assert!(seen > 0);
}

/// The kept guest never changes, so neither does what its run costs, whatever machine it runs on.
#[test]
fn fuel_is_the_same_figure_on_every_machine() {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/kept/contract-0.1.0.wasm"));
    let script = json!({"needs": ["append:custom"], "entry": [{"report": "seen", "must": true}]});
    let source = PluginSource { bytes: bytes.expect("a guest"), ..source("old", &ALL, &script) };
    let report = sandbox().load(source).expect("it loads").run(on_entry(&session(&["u1", "a2", "u3"])));
    assert_eq!(report.fuel, 65_359);
}
