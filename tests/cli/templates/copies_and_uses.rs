//! Tests of the source of a new scheme, the scheme that it is compared with, the use of schemes, and unusual names.

use std::fs;

use crate::process::Home;
use crate::templates::{DEFAULT_ASK, ENGLISH_ASK, SCRIPT, listed, reasons, run};

#[test]
fn templates_of_scripts_in_any_folder_are_in_use() {
    let home = Home::new();
    home.put("_system/config/custom/gentle/ai_ask_v2.md", ENGLISH_ASK);
    home.put("scripts/other.yaml", SCRIPT.replace("gentle", "english").replace(", version: 2", ""));
    let before = listed(&home, "");
    assert!(reasons(&before, "unused").iter().any(|(path, _)| path.ends_with("ai_ask_v2.md")), "{before}");
    for place in ["talk.yaml", "clinic/night/talk.yml"] {
        home.put(place, SCRIPT);
        let after = listed(&home, "");
        assert_eq!(reasons(&after, "unused"), [], "{place}");
        assert!(!run(&home, "list").out.contains("UNUSED"), "{place}");
        fs::remove_file(home.path().join(place)).unwrap();
    }
}

#[test]
fn a_name_with_a_line_break_stays_on_its_line() {
    let home = Home::new();
    home.put("_system/config/custom/gentle/a\nb\u{1b}[2J.md", "a part");
    for arguments in ["list", "list --scheme gentle"] {
        let shown = run(&home, arguments);
        let all = shown.out + &shown.err;
        assert!(all.contains(r"a\nb\u{1b}[2J"), "{all}");
        assert!(!all.contains("a\nb") && !all.contains('\u{1b}'), "{all}");
    }
}

#[test]
fn a_new_scheme_is_copied_from_the_one_in_use() {
    let scheme = |configuration: &str, command: &str| {
        let home = Home::new();
        home.put("bcc-script.toml", configuration);
        home.put("_system/config/custom/own/ai_ask_v1.md", "mine, in English");
        let done = home.finish(command.split_whitespace(), "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        fs::read_to_string(home.path().join("_system/config/custom/gentle/ai_ask_v1.md")).unwrap()
    };
    for command in ["templates new gentle", "new scheme gentle"] {
        assert_eq!(scheme("", command), DEFAULT_ASK, "{command}");
        assert_eq!(scheme("[project]\nscheme = \"english\"\n", command), ENGLISH_ASK, "{command}");
        assert_eq!(scheme("[project]\nscheme = \"own\"\n", command), "mine, in English", "{command}");
    }
    assert_eq!(scheme("", "templates new gentle --from english"), ENGLISH_ASK);
}

#[test]
fn a_scheme_that_is_more_similar_to_another_than_the_default_is_reported() {
    let home = Home::new();
    home.put("_system/config/custom/gentle/ai_ask_v1.md", ENGLISH_ASK.replace("You have one job", "One job"));
    let found = run(&home, "diff ai_ask --scheme gentle");
    assert_eq!(found.code, Some(1));
    let expected = "`bcc-script templates diff --scheme gentle --against english` compares it with that scheme";
    assert!(found.err.contains(expected), "{}", found.err);
    assert!(!run(&home, "diff --scheme gentle --against english").err.contains("is closer"));
    home.put("_system/config/custom/gentle/ai_ask_v1.md", DEFAULT_ASK.replace("安全", "平安"));
    assert!(!run(&home, "diff --scheme gentle").err.contains("is closer"));
}
