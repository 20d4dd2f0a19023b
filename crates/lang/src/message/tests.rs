//! What the catalogue makes of texts: whole literals, filled places, sentences inside sentences, and what it must leave alone.

use std::collections::BTreeSet;

use super::catalogue::Catalogue;
use super::chinese::{FILES, entries};
use super::language::Language;
use super::pattern::{MessagePattern, PatternPiece, fill, pieces};

fn catalogue(entries: &[(&str, &str)]) -> Catalogue {
    Catalogue::of(entries.iter().map(|(english, chinese)| ((*english).to_owned(), (*chinese).to_owned())))
}

/// What the catalogue makes of a text; the text itself where it knows nothing of it.
fn said(catalogue: &Catalogue, text: &str) -> String {
    catalogue.said(text).unwrap_or_else(|| text.to_owned())
}

#[test]
fn the_first_variable_that_is_set_chooses_the_language() {
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
        assert_eq!(Language::of_environment(get), expected, "{variables:?}");
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
fn a_literal_is_read_as_format_reads_it() {
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
fn a_text_is_found_by_the_literal_it_was_made_from() {
    let known = catalogue(&[
        ("no files", "没有文件"),
        ("there is no model `{name}`", "没有模型 `{name}`"),
        ("line {} has {} places", "第 {1} 行有 {2} 处"),
        ("{count} of {all} are used", "共 {all} 个，用了 {count} 个"),
    ]);
    let table = [
        ("no files", "没有文件"),
        ("there is no model `快速`", "没有模型 `快速`"),
        ("line 3 has 12 places", "第 3 行有 12 处"),
        ("2 of 5 are used", "共 5 个，用了 2 个"),
        ("nothing of this is known", "nothing of this is known"),
        ("", ""),
        ("没有", "没有"),
    ];
    for (text, expected) in table {
        assert_eq!(said(&known, text), expected, "{text}");
    }
}

#[test]
fn the_pattern_with_most_words_of_its_own_is_meant() {
    let known = catalogue(&[
        ("{what} is wrong", "{what}错了"),
        ("the name of {what} is wrong", "{what}的名称错了"),
        ("`{a}` and `{b}` are two spellings", "`{a}` 与 `{b}` 是两种写法"),
        ("`{a}` are two spellings", "`{a}` 是两种写法"),
    ]);
    assert_eq!(said(&known, "the name of x is wrong"), "x 的名称错了");
    assert_eq!(said(&known, "x is wrong"), "x 错了");
    assert_eq!(said(&known, "`x` and `y` are two spellings"), "`x` 与 `y` 是两种写法");
}

#[test]
fn places_take_little_and_the_last_words_close_the_text() {
    let pattern = MessagePattern::new("{a}: {b}", "{b}…{a}");
    let places = |pattern: &MessagePattern, text: &str| {
        let found = pattern.captured(text)?;
        Some(found.iter().map(|one| one.text.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(places(&pattern, "x: y: z").unwrap(), ["x", "y: z"]);
    assert_eq!(places(&MessagePattern::new("a {x} b", ""), "a 1 b 2 b").unwrap(), ["1 b 2"]);
    assert_eq!(places(&MessagePattern::new("{a}{b}!", ""), "12!").unwrap(), ["12", ""]);
    assert_eq!(places(&MessagePattern::new("{n} file{s}", ""), "3 files").unwrap(), ["3", "s"]);
    assert_eq!(places(&MessagePattern::new("a{x}a", ""), "a"), None, "one text is not two");
    assert_eq!(places(&MessagePattern::new("`{x}` is", ""), "`a` or `b` is"), None, "a pair of backticks is not torn");
    assert_eq!(places(&MessagePattern::new("{x} is {x}", ""), "a is b"), None, "one name holds one text");
}

#[test]
fn what_stands_in_a_place_is_said_too_unless_it_is_code() {
    let known = catalogue(&[
        ("{what} must be {kind}, but here is {found}", "{what}必须是{kind}，这里却是{found}"),
        ("an item of `{name}`", "`{name}` 的一项"),
        ("a list", "列表"),
        ("`{key}` is unknown", "不认识 `{key}`"),
    ]);
    assert_eq!(
        said(&known, "an item of `a list` must be a list, but here is 3"),
        "`a list` 的一项必须是列表，这里却是 3"
    );
    assert_eq!(said(&known, "`a list` is unknown"), "不认识 `a list`");
}

#[test]
fn sentences_that_the_code_puts_together_are_said_one_by_one() {
    let known = catalogue(&[
        ("write `{x}`", "写成 `{x}`"),
        ("remove it", "删除它"),
        ("action", "动作"),
        ("no {x} is set", "没有设置 {x}"),
        ("a number", "数字"),
        ("a text", "文本"),
        ("error: {error}", "错误：{error}"),
        ("{} errors", "{1} 个错误"),
        ("{} warnings", "{1} 个警告"),
        ("kinds are {}", "动作类型有 {1}"),
        ("{used} of {limit} turns", "{used} / {limit} 回合"),
        ("{used} of {limit} calls", "{used} / {limit} 次调用"),
    ]);
    let table = [
        ("remove it; write `a; b`", "删除它；写成 `a; b`"),
        ("remove it (write `a`)", "删除它（写成 `a`）"),
        ("remove it (see (1))", "remove it (see (1))"),
        ("remove it (`see (1)`)", "删除它（`see (1)`）"),
        ("remove it\n  write `a`\nunknown", "删除它\n  写成 `a`\nunknown"),
        ("a number or a text", "数字或文本"),
        ("error: remove it", "错误：删除它"),
        ("error: what nobody knows; remove it", "错误：what nobody knows; remove it"),
        ("2 errors, 1 warnings", "2 个错误，1 个警告"),
        ("kinds are `a`, `b` or `c`", "动作类型有 `a`、`b` 或 `c`"),
        ("`a`, `b` and `c`", "`a`、`b` 和 `c`"),
        ("1 of 2 turns, 3 of 4 calls", "1 / 2 回合，3 / 4 次调用"),
        ("kinds are `a`, `b, c`", "动作类型有 `a`、`b, c`"),
        ("  remove it\n", "  删除它\n"),
        ("rock and roll", "rock and roll"),
        ("action: greet", "action: greet"),
    ];
    for (text, expected) in table {
        assert_eq!(said(&known, text), expected, "{text}");
    }
}

#[test]
fn names_of_files_are_the_same_in_every_language() {
    let known = catalogue(&[
        ("there is no file {shown}", "没有文件 {shown}"),
        ("{shown} cannot be read: {error}", "{shown} 无法读取：{error}"),
        ("error: {error}", "错误：{error}"),
        ("it says 「{}」{why}", "它说「{1}」{why}"),
        ("{} files", "{1} 个文件"),
        ("remove it", "删除它"),
    ]);
    let table = [
        ("there is no file n/no files; remove it", "没有文件 n/no files; remove it"),
        ("there is no file remove it", "没有文件 remove it"),
        ("error: 2 files cannot be read: 2 files", "错误：2 files 无法读取：2 个文件"),
        ("error: there is no file 2 files", "错误：没有文件 2 files"),
        ("2 files cannot be read: remove it", "2 files 无法读取：删除它"),
        ("error: 2 files; but no more of it", "错误：2 files; but no more of it"),
        ("it says 「remove it」", "它说「remove it」"),
    ];
    for (text, expected) in table {
        assert_eq!(said(&known, text), expected, "{text}");
    }
}

#[test]
fn a_name_with_backticks_leaves_the_english_rather_than_changing_what_it_says() {
    let known = catalogue(&[
        ("unknown key `{key}` in {what}", "{what}里有未知的键 `{key}`"),
        ("`{a}` and `{b}` are two spellings", "`{a}` 与 `{b}` 是两种写法"),
    ]);
    for text in
        ["unknown key `a` and `b` in `c", "`a` and `b` and `c` are two spellings", "`a`b` and `c` are two spellings"]
    {
        assert_eq!(known.said(text), None, "{text}");
    }
}

#[test]
fn a_pattern_of_few_words_does_not_take_prose_that_nobody_knows() {
    let known = catalogue(&[("{a} of {b}", "{b} 的 {a}"), ("a list", "列表"), ("write\n{lines}", "请写成\n{lines}")]);
    assert_eq!(said(&known, "write\noutput:\n  - get: a"), "请写成\noutput:\n  - get: a");
    assert_eq!(said(&known, "the middle of the night is dark"), "the middle of the night is dark");
    assert_eq!(said(&known, "3 of 4"), "4 的 3");
    assert_eq!(said(&known, "a list of `x y`"), "`x y` 的列表");
}

#[test]
fn braces_of_a_literal_that_is_no_format_stay() {
    let known =
        catalogue(&[("write `{{ name }}`", "请写 `{{ name }}`"), ("write `{{{name}}}` so", "请写 `{{{name}}}`")]);
    assert_eq!(said(&known, "write `{{ name }}`"), "请写 `{{ name }}`");
    assert_eq!(said(&known, "write `{ name }`"), "请写 `{ name }`");
    assert_eq!(said(&known, "write `{x}` so"), "请写 `{x}`");
}

#[test]
fn between_chinese_and_latin_stands_a_space_and_between_chinese_none() {
    let known = catalogue(&[
        ("{what} needs `{name}`", "{what} 缺少 `{name}`"),
        ("{what} is given", "{what}已给出"),
        ("a topic", "话题"),
        ("it begins with {sign}", "它以 {sign} 开头"),
        ("a backtick", "反引号"),
    ]);
    let table = [
        ("a topic needs `用户`", "话题缺少 `用户`"),
        ("`a` needs `b`", "`a` 缺少 `b`"),
        ("`a` is given", "`a` 已给出"),
        ("a topic is given", "话题已给出"),
        ("it begins with a backtick", "它以反引号开头"),
        ("it begins with >", "它以 > 开头"),
        ("it begins with 3", "它以 3 开头"),
    ];
    for (text, expected) in table {
        assert_eq!(said(&known, text), expected, "{text}");
    }
}

#[test]
fn names_that_stand_in_backticks_in_the_translation_alone_are_code_too() {
    let known =
        catalogue(&[("kinds are {}", "动作类型有 `{1}`"), ("a list", "列表"), ("set", "设置"), ("turns", "回合")]);
    assert_eq!(said(&known, "kinds are set, turns"), "动作类型有 `set, turns`");
}

#[test]
fn sentences_inside_sentences_end_somewhere() {
    let known = catalogue(&[("once again: {x}", "又：{x}")]);
    let deep = "once again: ".repeat(50) + "x";
    assert!(said(&known, &deep).starts_with("又：又："));
    let long = format!("once again: {}", "a; b (c), ".repeat(2_000));
    assert!(said(&known, &long).starts_with("又："));
}

#[test]
fn a_filled_literal_leaves_its_values_alone() {
    let values = [("who", "error: {why}"), ("why", "no files")];
    assert_eq!(Language::English.filled("{who} – {why} – {other}", &values), "error: {why} – no files – {other}");
    assert_eq!(fill("{1} {2}", &[("2", "b"), ("1", "a")]), "a b");
    assert_eq!(Language::Chinese.filled("no literal of {who}", &values), "no literal of error: {why}");
}

#[test]
fn english_costs_nothing_and_changes_nothing() {
    assert!(matches!(Language::English.said("error: x"), std::borrow::Cow::Borrowed("error: x")));
}

#[test]
fn every_file_of_the_catalogue_can_be_read_and_holds_texts_alone() {
    for (room, text) in FILES {
        let table: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{room}.toml: {error}"));
        for (english, value) in table {
            let texts = match value {
                toml::Value::Table(joined) if english == "joined" => joined.into_iter().collect(),
                value => vec![(english, value)],
            };
            for (english, value) in texts {
                assert!(value.as_str().is_some_and(|text| !text.trim().is_empty()), "{room}.toml: {english}");
            }
        }
    }
}

#[test]
fn a_translation_has_the_places_and_the_code_of_its_english() {
    let mut wrong = Vec::new();
    for (english, chinese) in entries() {
        let names = |text: &str, english: bool| -> BTreeSet<String> {
            let pieces = if english { pieces(text) } else { super::pattern::pieces_of_translation(text) };
            let places = pieces.into_iter().filter_map(|piece| match piece {
                PatternPiece::Place { name, .. } => Some(name),
                PatternPiece::Text(_) => None,
            });
            places.collect()
        };
        let (wanted, found) = (names(&english, true), names(&chinese, false));
        // What makes a plural in English (`file{s}`) has no place in Chinese.
        let plural = |name: &String| matches!(name.as_str(), "s" | "es" | "is" | "are" | "a" | "an");
        if !found.is_subset(&wanted) || wanted.difference(&found).any(|name| !plural(name)) {
            wrong.push(format!("{english}\n    has {wanted:?}, its Chinese {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
