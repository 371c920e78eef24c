use super::*;

const NO_MODELS: &str = r#"{"providers":{}}"#;

fn around(global: &str, project: Option<&str>, models: &str) -> Around {
    Around {
        global: Arc::new(Settings::parse("global", global.as_bytes())),
        project: project.map(|text| Arc::new(Settings::parse("project", text.as_bytes()))),
        models: Arc::new(Models::parse("models", models.as_bytes())),
        store: Arc::default(),
    }
}

fn model(provider: &str, id: &str) -> ModelId {
    ModelId { provider: provider.to_owned(), id: id.to_owned() }
}

/// The reserve with this model, and what said it.
fn reserve(around: &Around, of: Option<&ModelId>) -> (u64, String) {
    let Known { value, origin } = around.facts(of, &Given::default()).reserve;
    (value, origin.to_string())
}

fn window(models: &str, provider: &str, id: &str) -> Option<(u64, String)> {
    let around = around("", None, models);
    let known = around.facts(Some(&model(provider, id)), &Given::default()).window?;
    Some((known.value, known.origin.to_string()))
}

#[test]
fn the_project_wins_over_the_user_and_both_over_pis_default() {
    let nobody = around("", None, "");
    assert_eq!(reserve(&nobody, None), (16384, "Pi's default".to_owned()));
    let global = r#"{"compaction":{"reserveTokens":1,"enabled":false}}"#;
    let user = around(global, None, "");
    assert_eq!(reserve(&user, None), (1, "global: compaction.reserveTokens".to_owned()));
    let both = around(global, Some(r#"{"compaction":{"reserveTokens":2}}"#), "");
    assert_eq!(reserve(&both, None), (2, "project: compaction.reserveTokens".to_owned()));
    let facts = both.facts(None, &Given::default());
    assert_eq!((facts.enabled.value, facts.keep_recent.value), (false, 20_000), "the rest of it stays");
}

#[test]
fn a_models_own_numbers_win_and_only_its_exact_name_counts() {
    let global = r#"{"compaction":{"reserveTokens":1,"modelOverrides":{"p/a/b":{"reserveTokens":2},"p/*":{"reserveTokens":3},"c":{"reserveTokens":4}}}}"#;
    let around = around(global, Some(r#"{"compaction":{"reserveTokens":5}}"#), "");
    let (value, origin) = reserve(&around, Some(&model("p", "a/b")));
    assert_eq!((value, origin.as_str()), (2, "global: compaction.modelOverrides[\"p/a/b\"].reserveTokens"));
    for other in [model("p", "c"), model("p", "A/B"), model("", "c")] {
        assert_eq!(reserve(&around, Some(&other)).0, 5, "{other:?}");
    }
}

#[test]
fn what_was_given_wins_over_everything() {
    let around = around(r#"{"compaction":{"reserveTokens":1}}"#, None, "");
    let given = Given { reserve: Some((9, "--reserve".to_owned())), ..Given::default() };
    let known = around.facts(None, &given).reserve;
    assert_eq!((known.value, known.origin.to_string()), (9, "--reserve".to_owned()));
}

#[test]
fn what_is_no_object_replaces_one() {
    let global = r#"{"compaction":{"reserveTokens":1,"enabled":false}}"#;
    for project in ["null", "5", "\"x\"", "[1]"] {
        let around = around(global, Some(&format!(r#"{{"compaction":{project}}}"#)), "");
        let facts = around.facts(None, &Given::default());
        assert_eq!((facts.enabled.value, facts.reserve.value), (true, 16384), "{project}");
        assert_eq!(facts.faults, []);
    }
}

#[test]
fn enabled_is_what_javascript_takes_for_true() {
    for (value, is) in
        [("true", true), ("false", false), ("null", true), ("0", false), ("\"\"", false), ("\"no\"", true)]
    {
        let around = around(&format!(r#"{{"compaction":{{"enabled":{value}}}}}"#), None, "");
        assert_eq!(around.facts(None, &Given::default()).enabled.value, is, "{value}");
    }
}

#[test]
fn a_number_that_pi_refuses_is_told_with_line_and_column() {
    let around = around("{\"compaction\":{\n  \"reserveTokens\": -1}}", None, "");
    let facts = around.facts(None, &Given::default());
    assert_eq!(facts.reserve.value, 16384);
    let told: Vec<_> = facts.faults.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("global:2:20: compaction.reserveTokens: not a whole number"), "{told:?}");
}

#[test]
fn broken_settings_count_as_empty_and_say_where() {
    for (text, place) in [("{\n \"a\": tru}", "global:2:7"), ("7", "global:1:1"), ("\u{feff}{]", "global:1:2")] {
        let around = around(text, Some(r#"{"compaction":{"reserveTokens":7}}"#), NO_MODELS);
        let told: Vec<_> = around.faults().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].starts_with(place), "{text}: {told:?}");
        assert_eq!(reserve(&around, None).0, 7, "the other file still counts");
    }
    assert_eq!(around("", Some("[]"), NO_MODELS).faults().count(), 0);
}

#[test]
fn a_window_comes_from_models_json_before_the_table() {
    let table = window("", "openai", "gpt-4").expect("a model that Pi knows");
    assert_eq!(table, (8192, format!("the shipped table of {}", table::date())));
    assert_eq!(window("", "openai", "no-such-model"), None);
    let over = r#"{"providers":{"openai":{"modelOverrides":{"gpt-4":{"contextWindow":5000.5}}}}}"#;
    let key = "models: providers.openai.modelOverrides[\"gpt-4\"].contextWindow";
    assert_eq!(window(over, "openai", "gpt-4"), Some((5000, key.to_owned())));
    let own = r#"{"providers":{"openai":{"models":[{"id":"gpt-4"},{"id":"mine","contextWindow":9}]}}}"#;
    assert_eq!(window(own, "openai", "gpt-4").map(|w| w.0), Some(128_000), "what replaces it says no window");
    assert_eq!(window(own, "openai", "mine").map(|w| w.0), Some(9));
}

#[test]
fn a_newer_list_that_pi_has_fetched_comes_before_the_table() {
    let list = |time: &str| {
        let model = r#"{"id":"gpt-4","provider":"openai","contextWindow":9000}"#;
        let models = format!(
            r#"{model},{{"id":"b","provider":"other","contextWindow":1}},{{"id":"c","provider":"openai","type":"image"}}"#
        );
        format!(
            r#"{{"openai":{{"models":[{models}]{time}}},"openrouter":{{"models":[{{"id":"x","provider":"openrouter"}}]}}}}"#
        )
    };
    let window = |time: &str, provider: &str, id: &str| {
        let store = Arc::new(Store::parse("store", list(time).as_bytes()));
        let facts = Around { store, ..Around::default() }.facts(Some(&model(provider, id)), &Given::default());
        facts.window.map(|known| (known.value, known.origin.to_string()))
    };
    let newer = ",\"lastModified\":9e12";
    assert_eq!(window(newer, "openai", "gpt-4"), Some((9000, "store: openai[\"gpt-4\"].contextWindow".to_owned())));
    assert_eq!(
        window(newer, "openai", "gpt-4.1").map(|w| w.0),
        Some(1_047_576),
        "what it does not have, the table may"
    );
    assert_eq!(window(newer, "openai", "b"), None);
    for older in ["", ",\"lastModified\":5", ",\"lastModified\":null"] {
        assert_eq!(window(older, "openai", "gpt-4").map(|w| w.0), Some(8192), "{older}");
    }
    let of_key = table::all().find(|(provider, _)| *provider == "openrouter").expect("one of them").1;
    assert_eq!(window("", "openrouter", of_key), None, "the list is what the user's key may use");
}

#[test]
fn comments_and_last_commas_are_fine_in_models_json() {
    let text = "{ // mine\n\"providers\":{\"x\":{\"api\":\"openai-completions\",\"baseUrl\":\"http://x\",\"models\":[{\"id\":\"m\",\"contextWindow\":7,},]}}}";
    assert_eq!(window(text, "x", "m").map(|w| w.0), Some(7));
}

#[test]
fn what_pi_cannot_build_a_provider_from_does_not_count() {
    let lacks = r#"{"providers":{"x":{"models":[{"id":"m","contextWindow":7}]},"openai":{"modelOverrides":{"gpt-4":{"contextWindow":8}}}}}"#;
    assert_eq!(window(lacks, "x", "m"), None);
    assert_eq!(window(lacks, "openai", "gpt-4").map(|w| w.0), Some(8), "other providers go on");
    let wrong =
        r#"{"providers":{"openai":{"modelOverrides":{"gpt-4":{"contextWindow":8},"b":{"contextWindow":"8"}}}}}"#;
    assert_eq!(window(wrong, "openai", "gpt-4").map(|w| w.0), Some(8192), "a wrong type anywhere and nothing counts");
    assert_eq!(Models::parse("m", wrong.as_bytes()).faults().len(), 1);
}

#[test]
fn prices_may_be_changed_one_by_one() {
    let text = r#"{"providers":{"openai":{"modelOverrides":{"gpt-4":{"cost":{"output":1.5}}}}}}"#;
    let facts = around("", None, text).facts(Some(&model("openai", "gpt-4")), &Given::default());
    let prices = facts.prices.expect("prices").value;
    assert_eq!((prices.input, prices.output), (30.0, 1.5));
}

#[test]
fn the_threshold_is_pis() {
    let of = |settings: &str| {
        let models = r#"{"providers":{"openai":{"modelOverrides":{"gpt-4":{"contextWindow":20000}}}}}"#;
        around(settings, None, models).facts(Some(&model("openai", "gpt-4")), &Given::default()).threshold()
    };
    assert_eq!(of("{}"), Some(20_000 - 16_384));
    assert_eq!(of(r#"{"compaction":{"reserveTokens":30000}}"#), Some(0));
    assert_eq!(of(r#"{"compaction":{"enabled":false}}"#), None);
    assert_eq!(around("", None, "").facts(None, &Given::default()).threshold(), None);
}

#[test]
fn the_session_directory_is_the_projects_then_the_users() {
    let dir = |global: &str, project: Option<&str>| {
        let around = around(global, project, "");
        Around::session_dir(&around.global, around.project.as_deref()).map(|dir| dir.value)
    };
    assert_eq!(dir(r#"{"sessionDir":"a"}"#, None).as_deref(), Some("a"));
    assert_eq!(dir(r#"{"sessionDir":"a"}"#, Some(r#"{"sessionDir":"b"}"#)).as_deref(), Some("b"));
    assert_eq!(dir(r#"{"sessionDir":"a"}"#, Some(r#"{"sessionDir":null}"#)), None);
    assert_eq!(dir("{}", Some("{}")), None);
}

#[test]
fn hostile_files_are_read_and_end() {
    let deep = "[".repeat(100_000);
    let nested = format!(r#"{{"compaction":{}1{}}}"#, r#"{"modelOverrides":"#.repeat(50_000), "}".repeat(50_000));
    let wide = format!(r#"{{"providers":{{{}"z":{{}}}}}}"#, r#""x":{"models":[]},"#.repeat(20_000));
    for text in [deep.as_str(), &nested, &wide, "\0", "{\"a\":1e400}", "{\"\\ud800\":1}", "\u{feff}"] {
        let store = Arc::new(Store::parse("s", text.as_bytes()));
        let around = Around { store, ..around(text, Some(text), text) };
        let facts = around.facts(Some(&model("a", "b")), &Given::default());
        assert_eq!(facts.keep_recent.value, KEEP_RECENT);
    }
}
