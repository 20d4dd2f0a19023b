//! Tests of `check::allow`: what is silenced, what is not, and the reports about comments that silence nothing.

use proptest::prelude::*;

use super::*;
use bcc_lang::source::render::{github::github, human, json::json, sarif::sarif};

/// A file with `marked` as its text, without the `«`, and the positions of the `«`.
fn marked_file(name: &str, marked: &str) -> (Arc<SourceFile>, Vec<usize>) {
    let mut places = Vec::new();
    let mut text = String::new();
    for character in marked.chars() {
        if character == '«' {
            places.push(text.len());
        } else {
            text.push(character);
        }
    }
    (Arc::new(SourceFile::new(name, text)), places)
}

/// The findings of `deprecated-field` at the marks that are not silenced: their lines, and the messages of useless comments.
fn remaining_in(name: &str, marked: &str) -> (Vec<usize>, Vec<String>) {
    let (file, places) = marked_file(name, marked);
    let found = places.iter().map(|place| Diagnostic::warning("deprecated-field", "m", &file, Span::point(*place)));
    let findings = allow(&file, found.collect());
    let lines =
        findings.iter().filter(|found| found.rule == "deprecated-field").map(|found| file.line(found.span.start));
    let useless = findings.iter().filter(|found| found.rule == "useless-allow").map(|found| found.message.clone());
    (lines.collect(), useless.map(String::from).collect())
}

fn remaining(marked: &str) -> (Vec<usize>, Vec<String>) {
    remaining_in("a.yaml", marked)
}

#[test]
fn a_comment_silences_findings_on_its_line_or_the_next() {
    let silenced = [
        "«a: b # bcc: allow(deprecated-field)\n",
        "a: «b   #bcc:allow( deprecated-field ) the host still reads it\n",
        "# bcc: allow(deprecated-field)\n«a: «b\n",
        "x: y\n  # bcc: allow(deprecated-field)\n\n  # more\n\n«a: b\n",
        "«a: b # bcc: allow(deprecated-placeholder, deprecated-field)\n",
        "\u{feff}# bcc: allow(deprecated-field)\r\n«a: b\r\n",
        "# bcc: allow(deprecated-field)\n# bcc: allow(deprecated-placeholder)\n«a: b\n",
    ];
    for text in silenced {
        assert_eq!(remaining(text).0, Vec::<usize>::new(), "{text}");
    }
    let reported = [
        ("«a: b\nc: d # bcc: allow(deprecated-field)\n", 1),
        ("c: d # bcc: allow(deprecated-field)\n«a: b\n", 2),
        ("# bcc: allow(deprecated-field)\nc: d\n«a: b\n", 3),
        ("«a: b # bcc: allow(deprecated-placeholder)\n", 1),
    ];
    for (text, line) in reported {
        let (lines, useless) = remaining(text);
        assert_eq!((lines, useless.len()), (vec![line], 1), "{text}");
    }
}

#[test]
fn findings_in_a_long_text_are_silenced_where_the_text_starts() {
    let silenced = [
        "a: | # bcc: allow(deprecated-field)\n\n  x\n  «y\n",
        "# bcc: allow(deprecated-field)\na: >-\n  x\n  «y\n",
        "# bcc: allow(deprecated-field)\na: \"x\n  «y\"\n",
        "# bcc: allow(deprecated-field)\na: x\n  «y\n",
    ];
    for text in silenced {
        assert_eq!(remaining(text), (vec![], vec![]), "{text}");
    }
    assert_eq!(remaining("a: |\n  x\n# bcc: allow(deprecated-field)\n«b: y\n"), (vec![], vec![]));
}

#[test]
fn a_hash_in_a_text_is_not_a_comment() {
    let texts = [
        "«a: 'b # bcc: allow(deprecated-field)'\n",
        "«a: b#bcc: allow(deprecated-field)\n",
        "«a: |\n  # bcc: allow(deprecated-field)\n",
        "a: |\n  # bcc: allow(deprecated-field)\n  «b\n",
        "k: 1\nk: \"«a # bcc: allow(deprecated-field)\"\n",
        "«a: b # about bcc: allow(deprecated-field)\n",
        "«a: b # bcc: a project of ours\n",
        "«a: b # bcc\n",
    ];
    for text in texts {
        let (lines, useless) = remaining(text);
        assert_eq!((lines.len(), useless.len()), (1, 0), "{text}: {useless:?}");
    }
}

#[test]
fn templates_have_comments_of_their_own() {
    let silenced = [
        "«Say {name}. <!-- bcc: allow(deprecated-field) -->\n",
        "<!-- bcc: allow(deprecated-field) -->\n\n<!-- system -->\n«Say {name}.\n",
        "{# bcc: allow(deprecated-field) #}\n«Say {name}.\n",
        "«Say {name}. {#bcc:allow(deprecated-field) we do#} and more\n",
    ];
    for text in silenced {
        assert_eq!(remaining_in("_system/a.md", text), (vec![], vec![]), "{text}");
    }
    assert_eq!(remaining_in("a.MD", "«a # bcc: allow(deprecated-field)\n"), (vec![1], vec![]));
    assert_eq!(remaining_in("a.md", "«<!-- bcc: allow(deprecated-field)\n-->\n"), (vec![1], vec![]));
    assert_eq!(remaining_in("a.md", "«a\n<!-- bcc: allow(deprecated-field) -->\n").1.len(), 1);
    assert_eq!(remaining("«a: 1 # <!-- bcc: allow(deprecated-field) -->\n"), (vec![1], vec![]));
}

/// The text after applying a fix of a finding.
fn fixed_text(file: &Arc<SourceFile>, found: &Diagnostic, fix: usize) -> String {
    let [edit] = found.fixes[fix].edits.as_slice() else { panic!("{:?}", found.fixes) };
    let mut text = file.text().to_owned();
    text.replace_range(edit.span.range(), &edit.text);
    text
}

#[test]
fn a_comment_that_silences_nothing_is_reported_with_a_fix() {
    let table = [
        ("a: b   # bcc: allow(deprecated-field)\nc: d\n", "no `deprecated-field` on line 1", "a: b\nc: d\n"),
        ("x: y\n  # bcc: allow(deprecated-field)\na: b\n", "on line 3", "x: y\na: b\n"),
        ("x: y\n# bcc: allow(deprecated-field)", "nothing below this comment", "x: y\n"),
        ("a: b # bcc: allow(unknown-kind) because", "cannot be silenced: a script", "a: b"),
        (
            "a: b # bcc: allow(deprecated_field)\n",
            "no diagnostic `deprecated_field`",
            "a: b # bcc: allow(deprecated-field)\n",
        ),
        ("a: b # bcc: allow(xyz)\n", "no diagnostic `xyz`", "a: b\n"),
        ("a: b # bcc：allow（deprecated-field）\n", "does not have the form", "a: b # bcc: allow(deprecated-field)\n"),
        ("a: b # bcc: allow deprecated-field\n", "does not have the form", "a: b # bcc: allow(deprecated-field)\n"),
        (
            "a: b # bcc: alow(deprecated-field、unknown-key)\n",
            "does not have the form",
            "a: b # bcc: allow(deprecated-field, unknown-key)\n",
        ),
        ("a: b # bcc: allow()\n", "does not have the form", "a: b\n"),
        ("a: b # bcc: allow(x,)\n", "does not have the form", "a: b\n"),
        ("a: b # bcc: allow\n", "does not have the form", "a: b\n"),
    ];
    for (text, message, expected) in table {
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let found = allow(&file, Vec::new());
        let [found] = found.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!(found.rule, "useless-allow");
        assert!(found.message.to_string().contains(message) && found.help.is_some(), "{text}: {}", found.message);
        assert_eq!(fixed_text(&file, found, 0), expected);
    }
}

#[test]
fn only_useless_names_are_removed() {
    let text = "a: b # bcc: allow(xyz, deprecated-field, unknown-kind) why\n";
    let file = Arc::new(SourceFile::new("a.yaml", text));
    let found = allow(&file, vec![Diagnostic::warning("deprecated-field", "m", &file, Span::point(0))]);
    let fixed: Vec<String> = found.iter().map(|found| fixed_text(&file, found, 0)).collect();
    let expected =
        ["a: b # bcc: allow(deprecated-field, unknown-kind) why\n", "a: b # bcc: allow(xyz, deprecated-field) why\n"];
    assert_eq!(fixed, expected);
}

#[test]
fn what_cannot_be_switched_off_is_not_silenced() {
    let file =
        Arc::new(SourceFile::new("a.yaml", "a: b # bcc: allow(unknown-kind, unknown-target, deprecated-field)\n"));
    let given = vec![
        Diagnostic::error("unknown-kind", "m", &file, Span::point(0)),
        Diagnostic::warning("unknown-target", "m", &file, Span::point(0)),
    ];
    let rules: Vec<&str> = allow(&file, given).iter().map(|found| found.rule).collect();
    // `deprecated-field` is not reported as useless: the error may have kept it from being found.
    assert_eq!(rules, ["unknown-kind", "unknown-target", "useless-allow", "useless-allow"]);
}

#[test]
fn findings_about_other_files_are_kept() {
    let file = Arc::new(SourceFile::new("a.yaml", "a: b # bcc: allow(deprecated-field)\n"));
    let other = Arc::new(SourceFile::new("b.yaml", "a: b\n"));
    let findings = allow(&file, vec![Diagnostic::warning("deprecated-field", "m", &other, Span::point(0))]);
    assert_eq!(findings.iter().map(|found| found.rule).collect::<Vec<_>>(), ["useless-allow", "deprecated-field"]);
}

#[test]
fn thousands_of_comments_are_read_in_linear_time() {
    // An algorithm slower than linear would not finish here.
    let table = [
        ("a.yaml", "# bcc: allow(deprecated-field)\n".repeat(20_000) + "a: b\n", 20_000),
        ("a.md", "{#".repeat(500_000) + "bcc", 0),
        ("a.md", "<!-- bcc: allow(deprecated-field) -->\n".repeat(20_000), 20_000),
        ("a.md", "<!-- bcc: allow(deprecated-field) -->".repeat(20_000), 20_000),
    ];
    for (name, text, expected) in table {
        let file = Arc::new(SourceFile::new(name, text));
        assert_eq!(allow(&file, Vec::new()).len(), expected);
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "# bcc: allow(deprecated-field)",
        "#bcc:",
        "# bcc: allow",
        "(",
        ")",
        "（",
        "，",
        ",",
        "unknown-kind",
        "xyz",
        "deprecated-field",
        " ",
        "\n",
        "\r\n",
        "\n  ",
        "a: ",
        "- ",
        "|",
        ">-",
        "'",
        "\"",
        "[",
        "]",
        "好",
        "<!-- bcc: allow(deprecated-field) -->",
        "<!--",
        "-->",
        "{#",
        "#}",
        "\u{feff}",
        "---\n",
        "bcc: allow(",
        "\u{85}",
        "\u{1b}",
        "\0",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_and_every_fix_is_valid(text in pieces(), name in "a\\.(yaml|md)", places in prop::collection::vec(0usize..200, 0..5)) {
        let file = Arc::new(SourceFile::new(name, text));
        let found: Vec<_> = places.iter().map(|at| Diagnostic::warning("deprecated-field", "m", &file, Span::point(*at))).collect();
        let findings = allow(&file, found);
        for edit in findings.iter().flat_map(|found| &found.fixes).flat_map(|fix| &fix.edits) {
            prop_assert!(file.text().get(edit.span.range()).is_some(), "{edit:?}");
        }
        let formats = [human::report(&findings, &human::Options::default()), json(1, &findings), github(&findings), sarif(&findings, &[])];
        for (index, text) in formats.iter().enumerate() {
            prop_assert!(!text.contains('\u{1b}'), "{index}");
        }
        prop_assert_eq!(formats[2].lines().count(), findings.len());
    }
}
