//! The first look: `pi-graft demo`.

use crate::stage::Stage;

#[test]
fn the_demo_shows_a_graft_of_each_shipped_plugin_and_leaves_a_session_that_holds() {
    let stage = Stage::new(1, "");
    let folder = stage.path("temporary");
    std::fs::create_dir(&folder).expect("a folder");
    let output = stage.command(&["demo", "--keep"]).env("TMPDIR", &folder).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let grafted = |what: &str| said.lines().any(|line| line.starts_with("  + ") && line.contains(what));
    for what in
        ["DB_PASSWORD=[redacted password", "[The result of read", "Budget: this session has cost", "a summary of"]
    {
        assert!(grafted(what), "{what}: {said}");
    }
    let session = std::fs::read_dir(&folder).expect("the folder").flatten().next().expect("what was kept").path();
    let session = session.join("sessions/--demo-api-server--/demo.jsonl");
    let checked = stage.run(&["session", "validate", session.to_str().expect("a plain path")]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let context = stage.run(&["session", "context", session.to_str().expect("a plain path")]);
    let context = String::from_utf8_lossy(&context.stdout).into_owned();
    assert!(context.contains("rate limiting") && !context.contains("kT9!vq2Lw7xZ"), "{context}");
}
