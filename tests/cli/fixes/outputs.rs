//! Tests of the fix for legacy outputs, which is applied only where no text is lost.

use std::fs;

use serde_json::Value;

use crate::fixes::{NEW, run};
use crate::process::Home;

/// Empty lines at the end of a text may be part of it: the fix is made only where none is lost.
#[test]
fn a_legacy_output_is_converted_only_where_no_text_is_lost() {
    let action = |config: &str| {
        let config: String = config.split_inclusive('\n').map(|line| format!("{:1$}{line}", "", 16)).collect();
        let head = NEW.split("              config:\n").next().unwrap_or_default();
        format!("{head}              config:\n{config}")
    };
    let keep_chomping = "content: 您好\nextraction_prompt: |+\n  心情\n\n\ntarget_variable: mood\n";
    let table = [
        (keep_chomping.to_owned(), false),
        (keep_chomping.replace("|+", "|"), true),
        (keep_chomping.replace("|+", "|-"), true),
        ("target_variable: mood\nextraction_prompt: |+\n  心情\n\n\ncontent: 您好\n".to_owned(), true),
        ("extraction_prompt: 心情 # 一\ncontent: 您好\n\n# 二\ntarget_variable: mood # 三\n".to_owned(), true),
        (
            "output: [{ get: mood, define: 心情 }]\ncontent: 您好\ntarget_variable: mood\nextraction_prompt: 心情\n"
                .to_owned(),
            true,
        ),
        (
            "extraction_prompt: &a 心情\noutput: [{ get: mood, define: 心情 }]\ntarget_variable: mood\ncontent: *a\n"
                .to_owned(),
            false,
        ),
    ];
    for (config, sure) in table {
        let home = Home::new();
        let text = action(&config).replace("ai_say", "ai_ask");
        let file = home.put("scripts/a.yaml", &text);
        let before = parsed(&text);
        run(&home, &["migrate", "--write"]);
        let after = fs::read_to_string(&file).unwrap();
        assert_eq!(after != text, sure, "{text}\n{after}");
        let defined = |action: &Value, key: &str| action["config"][key].clone();
        let (old, new) = (first_action(&before), first_action(&parsed(&after)));
        if sure {
            assert_eq!(new["config"]["output"][0]["define"], defined(&old, "extraction_prompt"), "{after}");
            assert_eq!(defined(&new, "content"), defined(&old, "content"), "{after}");
        }
    }
}

fn parsed(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

fn first_action(script: &Value) -> Value {
    script["session"]["phases"][0]["topics"][0]["actions"][0].clone()
}
