//! Tests that numbers keep the digits that were written, in everything that the program writes, also after it was killed.

use std::time::Instant;

use serde_json::json;

use crate::process::{Home, Next, TIMEOUT};

const SCRIPT: &str = "
session:
  session_id: shop
  declare:
    - { var: rate, type: number, value: 0.50 }
    - { var: fee, type: number }
    - { var: sizes }
    - { var: salary, type: number, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: ask
              config: { content: How much?, delivery: verbatim, output: [{ get: price }, { get: item }, { get: salary }] }
            - { action_type: ai_ask, action_id: sure, config: { content: 'Sure? {{ price }}', delivery: verbatim, exit: any_answer } }
            - action_type: ai_say
              action_id: tell
              config: { content: '{{ price }} {{ item.cost }} {{ rate }} {{ fee }} {{ sizes }} {{ price + 1 }}', delivery: verbatim }
";

const REPLY: &str = r#"{"safety_risk": {"detected": false}, "content": "Good.", "EXIT": "YES", "BRIEF": "",
"price": 1.10, "item": {"cost": 20241018220014123456789012, "list": [1.0]}, "salary": 8100.50}"#;

const SURE: &str = r#"{"safety_risk": {"detected": false}, "content": "", "EXIT": "YES", "BRIEF": ""}"#;

/// The lines of a process up to the `n`th that contains `part`.
fn lines_up_to(running: &crate::process::Running, part: &str, mut n: usize) -> String {
    let mut lines = String::new();
    while n > 0 {
        match running.line_until(Instant::now() + TIMEOUT) {
            Next::Line(line) => {
                n -= usize::from(line.contains(part));
                lines.push_str(&line);
                lines.push('\n');
            }
            Next::TimedOut | Next::End => panic!("no `{part}` in\n{lines}"),
        }
    }
    lines
}

#[test]
fn numbers_keep_their_digits_after_a_kill_and_in_every_output() {
    let home = Home::new();
    let script = home.file("shop.yaml", SCRIPT);
    let model = home.file("replies.json", &json!({ "replies": { "ask": [REPLY], "sure": [SURE] } }).to_string());
    let given = home.file("given.yaml", "sizes: [1.0, { low: 2.250 }]\n");
    let model = format!("replay:{}", model.display());
    let arguments = ["run", script.to_str().unwrap(), "--session", "one", "--json", "--model", &model];
    let mut first = home.start(
        arguments.into_iter().chain(["--var", "fee=3.00", "--vars", given.to_str().unwrap()]).collect::<Vec<_>>(),
    );
    lines_up_to(&first, r#""type":"waiting""#, 1);
    first.send("{\"user\": \"one ten\"}\n");
    let lines = lines_up_to(&first, r#""type":"waiting""#, 1);
    assert!(lines.contains(r#""name":"price","scope":"session","value":1.10,"#), "{lines}");
    assert!(lines.contains(r#""value":{"cost":20241018220014123456789012,"list":[1.0]}"#), "{lines}");
    let extracted = r#""extracted_variables":{"price":1.10,"item":{"cost":20241018220014123456789012,"list":[1.0]},"salary":"***"}"#;
    assert!(lines.contains(extracted), "{lines}");
    assert!(!lines.contains("8100.5"), "{lines}");
    first.kill();

    let resumed = home.finish(["sessions", "resume", "one"], "/vars\nyes\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let said = "1.10 20241018220014123456789012 0.50 3.00 [1.0,{\"low\":2.250}] 2.1";
    assert!(resumed.out.contains(said), "{}", resumed.out);

    let json = home.finish(["sessions", "export", "one"], "").out;
    for part in [
        "\"price\": {\n        \"value\": 1.10,",
        "\"value\": 0.50,",
        "\"value\": 3.00,",
        "\"low\": 2.250",
        "\"price\": 1.10,\n        \"item\": {\n          \"cost\": 20241018220014123456789012,",
    ] {
        assert!(json.contains(part), "{part}\n{json}");
    }
    let markdown = home.finish(["sessions", "export", "one", "--format", "md"], "").out;
    for part in [
        r"`price` = 1\.10 ",
        r"`rate` = 0\.50 ",
        r"`fee` = 3\.00 ",
        r#"`sizes` = \[1.0,{"low":2.250}\] "#,
        r"`salary` = \*\*\* ",
    ] {
        assert!(markdown.contains(part), "{part}\n{markdown}");
    }
    assert!(!json.contains("8100.5") && !markdown.contains("8100.5"));
    let state = home.finish(["sessions", "export", "one", "--format", "protocol"], "").out;
    for part in [
        "\"price\": 1.10,",
        "\"cost\": 20241018220014123456789012,",
        "\"rate\": 0.50,",
        "\"fee\": 3.00,",
        "\"low\": 2.250",
    ] {
        assert!(state.contains(part), "{part}\n{state}");
    }
    assert!(!state.contains("8100.5"));
}

#[test]
fn snapshots_of_tests_have_the_digits() {
    let home = Home::new();
    home.file("shop.yaml", SCRIPT);
    let test = "test: shop\nscript: shop.yaml\nvars: { fee: 3.00, sizes: [1.0, { low: 2.250 }], salary: 8100.50 }\ndialogue:\n  - ai: How much?\nexpect: { status: waiting_input }\nsnapshot: variables\n";
    home.file("test.yaml", test);
    let updated = home.finish(["test", "test.yaml", "--update"], "");
    assert_eq!(updated.code, Some(0), "{}{}", updated.out, updated.err);
    let files =
        std::fs::read_dir(home.path().join("snapshots")).map(|found| found.map(|file| file.unwrap().path()).collect());
    let files: Vec<std::path::PathBuf> = files.unwrap_or_default();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for part in ["    fee: 3.00\n", "    rate: 0.50\n", "    - 1.0\n", "low: 2.250\n"] {
        assert!(text.contains(part), "{part}\n{files:?}\n{text}");
    }
    assert!(!text.contains("8100.5"), "{text}");
    assert_eq!(home.finish(["test", "test.yaml"], "").code, Some(0));
}

#[test]
fn replies_outcomes_and_expectations_of_tests_have_the_digits() {
    let home = Home::new();
    home.file("shop.yaml", SCRIPT);
    let raw = r#"'{"content": "Good.", "EXIT": "YES", "price": 1.10, "item": {"cost": 1, "id": 20241018220014123456789012}}'"#;
    let test = |reply: &str, id: &str| {
        format!(
            "test: shop\nscript: shop.yaml\nmodel: {{ ask: [{reply}], sure: [{{ EXIT: 'YES' }}] }}\ndialogue:\n  - ai: How much?\n  - user: much\n  - ai: \"Good.\"\n  \
             - ai: Sure? 1.10\n  - user: yes\nexpect: {{ variables: {{ item: {{ cost: 1, id: {id} }} }} }}\nsnapshot: [outcomes, events]\n",
        )
    };
    let value = "{ content: Good., EXIT: 'YES', price: 1.10, item: { cost: 1, id: 2.50 } }";
    for (reply, id, parts) in [
        (raw, "20241018220014123456789012", ["price: 1.10\n", "id: 20241018220014123456789012\n"]),
        (value, "2.50", ["price: 1.10\n", "id: 2.50\n"]),
    ] {
        let expected = test(reply, id);
        home.file("test.yaml", &expected);
        let updated = home.finish(["test", "test.yaml", "--update"], "");
        assert_eq!(updated.code, Some(0), "{}{}", updated.out, updated.err);
        let text = std::fs::read_to_string(home.path().join("snapshots/test.yaml")).unwrap();
        for part in parts {
            assert!(text.matches(part).count() >= 2, "{part}\n{text}");
        }
        home.file(
            "test.yaml",
            &expected
                .replace("id: 20241018220014123456789012 }", "id: 20241018220014123456789013 }")
                .replace("id: 2.50 } } }\nsnap", "id: 2.51 } } }\nsnap"),
        );
        let failed = home.finish(["test", "test.yaml"], "");
        assert_eq!(failed.code, Some(1), "{}{}", failed.out, failed.err);
    }
}

#[test]
fn a_key_that_is_given_twice_is_refused() {
    let home = Home::new();
    home.file("shop.yaml", SCRIPT);
    for (name, text) in [("twice.json", "{\"fee\": 3.10,\n \"fee\": 4}"), ("twice.yaml", "fee: 3.10\nfee: 4\n")] {
        home.file(name, text);
        let refused = home.finish(["run", "shop.yaml", "--vars", name], "");
        assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
        for part in [&*format!("{name}, line 2: `fee` appears more than once"), "keep only one of them"] {
            assert!(refused.err.contains(part), "{part}\n{}", refused.err);
        }
    }
}
