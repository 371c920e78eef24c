//! What an assistant's message may say of its usage (S4.5).

use super::Scene;

pub const USAGES: &[Scene] = &[
    (
        "bad-usage",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","stopReason":"stop""#,
        "footer throws | user: hello / assistant: answer",
    ),
    (
        "bad-usage",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1},"stopReason":"stop""#,
        "footer throws | user: hello / assistant: answer",
    ),
    (
        "usage-number",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":"5","cost":{"total":0}},"stopReason":"stop""#,
        "tokens NaN | user: hello / assistant: answer",
    ),
    (
        "usage-number",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":1e400,"cost":{"total":0}},"stopReason":"stop""#,
        "tokens NaN | user: hello / assistant: answer",
    ),
    (
        "usage-number",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"cost":{"total":"free"}},"stopReason":"stop""#,
        "| user: hello / assistant: answer",
    ),
    (
        "usage-part",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cost":{"total":0}},"stopReason":"stop""#,
        "| user: hello / assistant: answer",
    ),
    (
        "usage-part",
        r#"x message "role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"cost":{}},"stopReason":"stop""#,
        "| user: hello / assistant: answer",
    ),
];
