//! Tests of variables that are set on the command line or stored for a user.

use super::*;

fn value(home: &Home, scope: &str, name: &str) -> Value {
    home.export("t")["variables"][scope][name]["value"].clone()
}

#[test]
fn variables_are_given_by_name_and_by_file_and_the_name_wins() {
    let home = Home::new();
    home.file("vars.yaml", "name: 来自文件\nage: 20\ncode: 一个秘密\n");
    let finished = talk(&home, &["--vars", "vars.yaml", "--var", "age=41", "--var", "story=a=b"], "");
    assert_eq!(finished.code, Some(3), "{}", finished.err);
    assert_eq!(value(&home, "session", "name"), "来自文件");
    assert_eq!(value(&home, "session", "age"), 41);
    assert_eq!(value(&home, "session", "story"), "a=b");
    assert_eq!(value(&home, "session", "code"), "***");
    assert_eq!(home.export("t")["variables"]["session"]["age"]["source"], "command_line");
}

#[test]
fn an_invalid_variable_is_reported_before_the_start() {
    let cases = [
        ("nmae=x", "did you mean `name`?"),
        ("age=many", "is not of type integer"),
        ("age", "has no `=`"),
        ("visits=x", "is not of type integer"),
    ];
    for (given, message) in cases {
        let home = Home::new();
        let script = if given.starts_with("visits") { "short_talk.yaml" } else { "two_phases.yaml" };
        let finished = run(&home, script, &["--var", given], "小林\n");
        assert_eq!(finished.code, Some(2), "{given}: {}", finished.err);
        assert!(finished.err.contains(message), "{given}: {}", finished.err);
        assert_eq!((finished.out.as_str(), sessions(&home, &["list"]).out.as_str()), ("", ""), "{given}");
    }
}

#[test]
fn global_variables_are_stored_for_their_user_only() {
    let home = Home::new();
    let script = home.script("short_talk.yaml").display().to_string();
    let visits: Vec<String> =
        [&[][..], &["--user", "lin"], &["--user", "lin"], &[], &["--user", "wu"], &["--user", "lin"]]
            .iter()
            .map(|user| {
                let finished = home.finish(["run", &script].iter().chain(user.iter()), "小林\n12\n");
                assert_eq!(finished.code, Some(0), "{}", finished.err);
                finished.out.lines().last().unwrap().to_owned()
            })
            .collect();
    assert_eq!(visits, [1, 1, 2, 2, 1, 3].map(|visit| format!("再见，这是第 {visit} 次。")));
}
