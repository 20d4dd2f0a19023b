//! Tests of languages, literals with placeholders, and the catalogue.

use std::collections::BTreeSet;

use super::chinese::{FILES, entries};
use super::language::Language;
use super::pattern::{PatternPiece, fill, fill_translation, pieces};

#[test]
fn the_first_variable_that_is_set_selects_the_language() {
    let table: [(&[(&str, &str)], Language); 8] = [
        (&[], Language::English),
        (&[("LANG", "zh_CN.UTF-8")], Language::Chinese),
        (&[("LANG", "zh_CN.UTF-8"), ("LC_MESSAGES", "en_US.UTF-8")], Language::English),
        (&[("LANG", "en_US"), ("LC_ALL", "zh_TW")], Language::Chinese),
        (&[("LC_ALL", "C"), ("LANG", "zh_CN")], Language::English),
        (&[("LC_ALL", "en_GB"), ("BCC_LANG", "zh")], Language::Chinese),
        (&[("LC_ALL", "zh_CN"), ("BCC_LANG", "en")], Language::English),
        (&[("LANG", "fr_FR.UTF-8")], Language::English),
    ];
    for (variables, expected) in table {
        let get = |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| *value);
        assert_eq!(Language::from_environment(get), expected, "{variables:?}");
    }
}

#[test]
fn a_language_has_many_names() {
    for name in ["zh", "ZH", "zh_CN.UTF-8", "zh-Hans", "zh_TW", "中文"] {
        assert_eq!(Language::parse(name), Some(Language::Chinese), "{name}");
    }
    for name in ["en", "en_US.UTF-8", "C", "C.UTF-8", "POSIX"] {
        assert_eq!(Language::parse(name), Some(Language::English), "{name}");
    }
    for name in ["", "fr", "zhx"] {
        assert_eq!(Language::parse(name), None, "{name}");
    }
}

#[test]
fn a_literal_is_parsed_like_a_format_string() {
    let place = |name: &str, code| PatternPiece::Place { name: name.into(), code };
    let text = |text: &str| PatternPiece::Text(text.into());
    assert_eq!(
        pieces("`{name}`: {} of {count:>3}, {:?} {{x}}"),
        [
            text("`"),
            place("name", true),
            text("`: "),
            place("1", false),
            text(" of "),
            place("count", false),
            text(", "),
            place("2", false),
            text(" {x}")
        ]
    );
    assert_eq!(pieces("{0} {}"), [place("1", false), text(" "), place("1", false)]);
    assert_eq!(pieces("a { b } {% if %}"), [text("a { b } {% if %}")]);
}

#[test]
fn a_space_separates_chinese_from_latin_but_not_chinese_from_chinese() {
    let table = [
        ("{what} 缺少 `{name}`", [("what", "话题"), ("name", "用户")], "话题缺少 `用户`"),
        ("{what} 缺少 `{name}`", [("what", "`a`"), ("name", "b")], "`a` 缺少 `b`"),
        ("{what}已给出{sign}", [("what", "`a`"), ("sign", "")], "`a` 已给出"),
        ("{what}已给出{sign}", [("what", "话题"), ("sign", "")], "话题已给出"),
        ("{what}以 {sign} 开头", [("what", "它"), ("sign", "反引号")], "它以反引号开头"),
        ("{what}以 {sign} 开头", [("what", "它"), ("sign", ">")], "它以 > 开头"),
        ("{what}以 {sign} 开头", [("what", "它"), ("sign", "3")], "它以 3 开头"),
    ];
    for (translation, values, expected) in table {
        let value = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(fill_translation(translation, value), expected, "{translation} {values:?}");
    }
}

#[test]
fn values_in_a_filled_literal_are_unchanged() {
    let values = [("who", "error: {why}"), ("why", "no files")];
    assert_eq!(Language::English.format("{who} – {why} – {other}", &values), "error: {why} – no files – {other}");
    assert_eq!(fill("{1} {2}", &[("2", "b"), ("1", "a")]), "a b");
    assert_eq!(Language::Chinese.format("no literal of {who}", &values), "no literal of error: {why}");
}

#[test]
fn english_borrows_the_literal() {
    assert!(matches!(Language::English.translate("error: x"), std::borrow::Cow::Borrowed("error: x")));
}

#[test]
fn every_file_of_the_catalogue_can_be_parsed_and_contains_only_texts() {
    for (crate_name, text) in FILES {
        let table: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{crate_name}.toml: {error}"));
        for (english, value) in table {
            assert!(value.as_str().is_some_and(|text| !text.trim().is_empty()), "{crate_name}.toml: {english}");
        }
    }
}

#[test]
fn a_translation_has_the_placeholders_of_its_english_text() {
    let mut wrong = Vec::new();
    for (english, chinese) in entries() {
        let names = |text: &str, english: bool| -> BTreeSet<String> {
            let pieces = if english { pieces(text) } else { super::pattern::translation_pieces(text) };
            let places = pieces.into_iter().filter_map(|piece| match piece {
                PatternPiece::Place { name, .. } => Some(name),
                PatternPiece::Text(_) => None,
            });
            places.collect()
        };
        let (expected, found) = (names(&english, true), names(&chinese, false));
        // English plural suffixes (`file{s}`) do not occur in Chinese.
        let plural = |name: &String| matches!(name.as_str(), "s" | "es" | "is" | "are" | "a" | "an");
        if !found.is_subset(&expected) || expected.difference(&found).any(|name| !plural(name)) {
            wrong.push(format!("{english}\n    has {expected:?}, its Chinese {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
