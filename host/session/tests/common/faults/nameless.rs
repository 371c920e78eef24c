//! Entries without an id: in no context, but Pi lists, names, counts and shows them (S2.2).

use super::Scene;

pub const NAMELESS: &[Scene] = &[
    (
        "no-id no-message",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"message\"}\n$a\n",
        "list missing, tree throws, footer throws | user: hello / assistant: answer",
    ),
    (
        "no-id null-content",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":null,\"timestamp\":1}}\n$a\n",
        "list missing | user: hello / assistant: answer",
    ),
    (
        "no-id content-type",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":5,\"timestamp\":1}}\n$a\n",
        "list missing | user: hello / assistant: answer",
    ),
    (
        "no-id null-block",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"content\":[null],\"usage\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"cost\":{\"total\":0}},\"timestamp\":1}}\n$a\n",
        "list missing | user: hello / assistant: answer",
    ),
    (
        "no-id bad-usage",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"content\":[],\"timestamp\":1}}\n$a\n",
        "footer throws | user: hello / assistant: answer",
    ),
    (
        "no-id name-text",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"session_info\",\"name\":5}\n$a\n",
        "list missing, name throws | user: hello / assistant: answer",
    ),
    (
        "no-id branch-summary-text",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"branch_summary\"}\n$a\n",
        "tree throws | user: hello / assistant: answer",
    ),
    (
        "no-id no-custom-content",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"custom_message\"}\n$a\n",
        "tree throws | user: hello / assistant: answer",
    ),
    (
        "no-id label-text",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"label\",\"targetId\":\"u1\",\"label\":5}\n$a\n",
        "| user: hello / assistant: answer",
    ),
    (
        "no-id",
        "$h\n$u\n{\"parentId\":\"u1\",\"timestamp\":\"2026-01-01T00:00:03.000Z\",\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"content\":5,\"timestamp\":1}}\n$a\n",
        "| user: hello / assistant: answer",
    ),
];
