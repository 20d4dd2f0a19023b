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
        assert_eq!(scheme("[project]\nscheme = \"english\"\n", command), ENGLISH_ASK, "{command}");
        assert_eq!(scheme("[project]\nscheme = \"own\"\n", command), "mine, in English", "{command}");
    }
    assert_eq!(scheme("", "templates new gentle --from chinese"), DEFAULT_ASK);
}

#[test]
fn a_new_scheme_has_the_language_of_the_project() {
    let english = SCRIPT.replace("  template_scheme: gentle\n", "").replace(", version: 2", "");
    let chinese = english.replace("How are you?", "您今天怎么样？");
    let named = |text: &str, scheme: &str| {
        text.replace("  session_id: visit\n", &format!("  session_id: visit\n  template_scheme: {scheme}\n"))
    };
    let (german, new) = (named(&english, "german"), named(&english, "gentle"));
    // The files of the project, and the arguments after the command, with the scheme that is copied.
    let table: [(&[&str], &str, &str, &str); 14] = [
        (&[], "gentle", "english", ENGLISH_ASK),
        (&[], "gentle --lang zh", "default", DEFAULT_ASK),
        (&[&english], "gentle", "english", ENGLISH_ASK),
        (&[&chinese], "gentle", "default", DEFAULT_ASK),
        (&[&english, &chinese, &chinese], "gentle", "default", DEFAULT_ASK),
        (&[&english, &chinese], "gentle", "english", ENGLISH_ASK),
        (&[&named(&english, "english")], "gentle", "english", ENGLISH_ASK),
        (&[&named(&english, "chinese")], "gentle", "default", DEFAULT_ASK),
        (&[&named(&chinese, "english")], "gentle", "english", ENGLISH_ASK),
        // The scheme that is created now; one that the project has.
        (&[&new], "gentle", "english", ENGLISH_ASK),
        (&[&german], "gentle", "default", DEFAULT_ASK),
        // A scheme with the name of a built-in one would hide it.
        (&[&chinese], "english", "english", ENGLISH_ASK),
        (&[&english], "chinese", "chinese", DEFAULT_ASK),
        (&[&english], "english --lang zh", "english", ENGLISH_ASK),
    ];
    for command in ["templates new", "new scheme"] {
        for (scripts, arguments, from, expected) in &table {
            let home = Home::new();
            home.put("bcc-script.toml", "");
            home.put("_system/config/custom/german/ai_ask_v1.md", DEFAULT_ASK);
            for (number, script) in scripts.iter().enumerate() {
                home.put(&format!("scripts/{number}.yaml"), script);
            }
            let done = home.finish(format!("{command} {arguments}").split_whitespace(), "");
            assert_eq!(done.code, Some(0), "{}", done.err);
            let name = arguments.split_once(' ').map_or(*arguments, |(name, _)| name);
            let file = home.path().join(format!("_system/config/custom/{name}/ai_ask_v1.md"));
            let case = format!("{scripts:?} {command} {arguments}\n{}", done.err);
            assert_eq!(fs::read_to_string(file).unwrap(), *expected, "{case}");
            // `--lang` selects another built-in scheme by its own name, and another language of the messages.
            if !arguments.contains("--lang") {
                assert!(done.err.contains(&format!("copied from the scheme `{from}`")), "{case}");
            }
        }
    }
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nscheme = \"gentle\"\n");
    home.put("_system/config/default/ai_ask_v1.md", "mine");
    home.put("scripts/a.yaml", english);
    assert_eq!(run(&home, "new gentle").code, Some(0));
    let text = fs::read_to_string(home.path().join("_system/config/custom/gentle/ai_ask_v1.md")).unwrap();
    assert_eq!(text, "mine", "the default templates of the project are those of its scripts");
}

#[test]
fn the_hints_after_a_copy_say_where_a_deleted_template_would_come_from() {
    let home = Home::new();
    let file = "_system/config/custom/english/ai_ask_v1.md";
    let created = run(&home, "new english ai_ask").err;
    assert!(created.contains("can be deleted: the built-in scheme `english` provides them"), "{created}");
    assert!(created.contains("`bcc-script templates diff --scheme english --against-built-in` shows"), "{created}");
    assert_eq!(run(&home, "diff --scheme english --against-built-in").code, Some(0));
    fs::remove_file(home.path().join(file)).unwrap();
    assert_eq!(run(&home, "show ai_ask --scheme english").out, ENGLISH_ASK);
    let other = run(&home, "new english ai_ask --from default").err;
    assert!(
        other.contains("templates that `english` lacks come from the built-in scheme `english`, not from `default`"),
        "{other}"
    );
    assert_eq!(run(&home, "diff --scheme english ai_ask --against default").code, Some(0));
    assert!(other.contains("`bcc-script templates diff --scheme english --against default` shows"), "{other}");
    let own = run(&home, "new gentle --from default").err;
    assert!(own.contains("can be deleted: the default scheme provides them"), "{own}");
}

#[test]
fn a_single_prompt_in_another_language_is_reported_with_how_to_replace_it() {
    let home = Home::new();
    let initialized = home.finish(["init", "p", "--lang", "en"], "");
    assert_eq!(initialized.code, Some(0), "{}", initialized.err);
    let validated = || home.finish(["validate", "--project", "p"], "");
    assert!(validated().err.contains("nothing to report"));
    let file = home.path().join("p/_system/config/custom/own/ai_say_v1.md");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let found = validated().out;
    let message = "this script is written in Latin letters, but the prompt builtin:_system/config/default/ai_say_v1.md is written in Chinese";
    assert!(found.contains("warning[template-language]") && found.contains(message), "{found}");
    let command = "templates new own ai_say_v1.md --from english";
    assert!(found.contains(&format!("`bcc-script {command}` copies")), "{found}");
    let copied = home.finish(command.split(' ').chain(["--project", "p"]), "");
    assert_eq!(copied.code, Some(0), "{}", copied.err);
    assert!(validated().err.contains("nothing to report"));
    // In its folder, the scheme has one of its own.
    fs::write(&file, DEFAULT_ASK).unwrap();
    let found = validated().out;
    assert!(found.contains("the prompt _system/config/custom/own/ai_say_v1.md is written in Chinese"), "{found}");
    assert!(found.contains("`bcc-script templates show NAME --scheme english`"), "{found}");
    fs::write(&file, text).unwrap();
    // The scheme that would be suggested is set already, and has the wrong templates.
    home.put("p/bcc-script.toml", "[project]\nscheme = \"english\"\n");
    home.finish(["templates", "new", "english", "--from", "chinese", "--project", "p"], "");
    let found = validated().out;
    assert!(found.contains("but its prompts are written in Chinese"), "{found}");
    assert!(found.contains("`_system/config/custom/english/` replace those of the built-in scheme"), "{found}");
    assert!(!found.contains("template_scheme"), "{found}");
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
