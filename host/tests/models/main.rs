//! Models behind a real server and a real program: whatever they do, the outcome is a defined one.

mod program;
mod server;
mod serving;

use std::path::Path;
use std::time::Duration;

use pi_graft::config::{ModelConfig, ModelFrom};
use pi_graft::models::{Answer, AskError, Models, Request};

/// What is asked in every scene. `SECRET` must never come back in an error.
const REQUEST: &str = r#"{"system":"sum up","messages":[{"role":"user","content":"SECRET"}],"maxTokens":100}"#;

fn config(from: ModelFrom, timeout: Duration) -> ModelConfig {
    ModelConfig { name: "m".into(), from, timeout, max_tokens_per_day: 1000, input_price: 1.0, output_price: 10.0 }
}

fn ask(from: ModelFrom, timeout: Duration, over: &dyn Fn() -> bool) -> Result<Answer, AskError> {
    let models = Models::of(&[config(from, timeout)], Path::new("/"));
    let request = Request::parse(REQUEST).expect("a request");
    let answer = models.get("m").expect("the model").ask(&request, over);
    if let Err(error) = &answer {
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }
    answer
}
