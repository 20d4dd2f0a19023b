//! Tests of values that no program can take, of much output, and of programs that do not exist.

use serde_json::json;

use crate::commands::{ALLOWED, RUN, command, count, outcome, project, text};
use crate::process::install_text;

#[test]
fn a_value_with_nul_reaches_no_program() {
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "what?", "delivery": "verbatim", "max_rounds": 1 } });
    let line = ["/bin/sh", "-c", "echo ran >> log"];
    let table = [
        json!({ "command": ["/bin/sh", "-c", "echo ran >> log", "sh", "{{ last_user_message }}"] }),
        json!({ "command": line, "env": { "NAME": "{{ last_user_message }}" } }),
        json!({ "command": line, "cwd": "{{ last_user_message }}" }),
    ];
    for config in table {
        let home = project(ALLOWED, &json!([ask, command("c", config.clone(), json!({}))]));
        let finished = home.finish(RUN, format!("{}\n", json!({ "user": "a\u{0}; touch evil" })));
        assert_eq!(finished.code, Some(1), "{config}: {finished:?}");
        assert!(finished.out.contains("contains the character NUL"), "{config}: {finished:?}");
        assert_eq!((text(&home, "log"), count(&finished, "effect_started")), (String::new(), 0), "{config}");
    }
    // The standard input may contain it.
    let config = json!({ "command": ["/bin/sh", "-c", "od -An -c"], "input": "{{ last_user_message }}" });
    let home = project(ALLOWED, &json!([ask, command("c", config, json!({}))]));
    let finished = home.finish(RUN, format!("{}\n", json!({ "user": "a\u{0}b" })));
    assert_eq!(outcome(&finished, "c")["metadata"]["stdout"], "   a  \\0   b\n", "{finished:?}");
}

#[test]
fn a_value_that_looks_like_an_option_is_one_argument_after_the_separator() {
    let set = json!({ "action_type": "set", "action_id": "set", "config": { "values": { "name": "--version\n-rf" } } });
    let list = command("c", json!({ "command": ["ls", "--", "{{ name }}"], "ok_codes": [2] }), json!({}));
    let home = project(ALLOWED, &json!([set, list]));
    home.file("--version\n-rf", "");
    let finished = home.finish(RUN, "");
    // It is the name of a file: the program finds it, which is none of the expected exit codes.
    assert_eq!(outcome(&finished, "c")["metadata"]["exit_code"], 0, "{finished:?}");
    let home = project(ALLOWED, &json!([set, list]));
    let finished = home.finish(RUN, "");
    assert_eq!(outcome(&finished, "c")["metadata"]["exit_code"], 2, "{finished:?}");
    assert!(!finished.out.contains("coreutils"), "it is no option");
}

#[test]
fn a_program_that_vanishes_or_cannot_run_fails_with_a_reason() {
    let table = [
        ("#!/no/such/interpreter\n", true, "was not found"),
        ("#!/bin/sh\n", false, "no permission to run"),
        ("no format of a program", true, "a first line such as `#!/bin/sh`"),
    ];
    for (content, executable, expected) in table {
        let home = project(ALLOWED, &json!([command("c", json!({ "command": ["./tool"] }), json!({}))]));
        if executable {
            install_text(&home.path().join("tool"), content);
        } else {
            home.file("tool", content);
        }
        let finished = home.finish(RUN, "");
        assert_eq!(finished.code, Some(1), "{content}: {finished:?}");
        assert!(finished.out.contains(expected), "{content}: {finished:?}");
        assert_eq!(count(&finished, "effect_started"), count(&finished, "effect_finished"));
    }
}
