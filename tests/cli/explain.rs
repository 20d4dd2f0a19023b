//! Tests of `bcc-script explain`: its pages and the list of pages.

use crate::process;
use bcc_check::diagnostics::{DIAGNOSTICS, page};
use bcc_lang::message::language::Language;

use process::Home;

#[test]
fn a_page_is_printed_as_it_is_written() {
    let home = Home::new();
    for name in ["unknown-key", "error[unknown-key]:"] {
        let finished = home.finish(["explain", name], "");
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
        assert_eq!(finished.out, page("unknown-key").unwrap().text(Language::English));
        let finished = home.finish(["explain", name, "--lang", "zh"], "");
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
        assert_eq!(finished.out, page("unknown-key").unwrap().text(Language::Chinese));
    }
}

#[test]
fn without_a_name_all_rules_are_listed_with_their_levels() {
    let finished = Home::new().finish(["explain"], "");
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = finished.out.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), DIAGNOSTICS.len());
    for (line, page) in lines.iter().zip(DIAGNOSTICS) {
        assert!(
            line.starts_with(&format!("{} ", page.slug)) && line.ends_with(&page.summary(Language::English)),
            "{line}"
        );
        let fields: Vec<&str> = line.split("  ").map(str::trim).filter(|field| !field.is_empty()).collect();
        assert_eq!(fields[1], page.severity.name());
        assert_eq!(fields[2] == "configurable", page.adjustable, "{line}");
    }
}

#[test]
fn for_an_unknown_name_similar_ones_are_suggested() {
    let home = Home::new();
    let table = [
        ("unknown_kye", "there is no diagnostic `unknown_kye`", "did you mean `unknown-key`?"),
        ("template", "there is no diagnostic `template`", "`template-syntax` or `unknown-template`"),
        ("深\u{1b}[31m", "there is no diagnostic `深", "`bcc-script explain` lists all"),
        ("", "there is no diagnostic ``", "lists all"),
    ];
    for (name, message, help) in table {
        let finished = home.finish(["explain", name], "");
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""), "{name}");
        assert!(finished.err.contains(message) && finished.err.contains(help), "{}", finished.err);
        assert!(!finished.err.contains('\u{1b}'));
    }
}
