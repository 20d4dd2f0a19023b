//! Tests of names: no two public types share a name, and types and modules use the field's terms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;

use crate::rust_source;

/// Words that the project does not use for types and modules, with the field's word for each.
const OLD: [(&str, &str); 33] = [
    ("Trial", "test runner"),
    ("Mend", "fix, repair"),
    ("Bend", "coercion"),
    ("Bent", "coerced"),
    ("Beside", "background"),
    ("Whereabouts", "location"),
    ("Voices", "model selection"),
    ("Lent", "context"),
    ("Birth", "new session"),
    ("Lost", "failure"),
    ("Facts", "semantic model"),
    ("Seen", "collected"),
    ("Leaving", "escape analysis"),
    ("Clash", "contradiction"),
    ("Remedy", "suggestion"),
    ("Manners", "reply policy"),
    ("Patience", "timeouts"),
    ("Asking", "retry state, prompt"),
    ("Arriving", "stream"),
    ("Came", "stream item"),
    ("Permits", "permissions"),
    ("Outside", "host services"),
    ("Shelf", "catalog, reader"),
    ("Listening", "capturing"),
    ("Heard", "captured"),
    ("Oldest", "legacy"),
    ("Pile", "truncation"),
    ("Fault", "error"),
    ("Refused", "rejected"),
    ("Refusal", "error, rejection"),
    ("Archive", "store"),
    ("Mood", "trend"),
    ("Routed", "route taken"),
];

/// Words that are too common to forbid in types: they are old only in the names of modules.
const OLD_MODULES: [&str; 7] = ["routes", "told", "said", "words", "kept", "older", "begin"];

/// Words that are old in the names of functions and constants.
const OLD_FUNCTIONS: [&str; 9] = ["barred", "told", "said", "mended", "bends", "faults", "begin", "begins", "most"];

fn sources() -> BTreeMap<String, String> {
    let texts = rust_source::files(Path::new(crate::ROOT));
    let only_tests: BTreeSet<String> = rust_source::only_tests(&texts);
    texts.into_iter().filter(|(name, _)| !only_tests.contains(name)).collect()
}

/// The part of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

/// Each public type with the files that define one of this name.
fn types(sources: &BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<&str>> {
    let defined = Regex::new(r"(?m)^ *pub(?:\([a-z]+\))? (?:struct|enum|trait|type|union) (\w+)").unwrap();
    let mut types: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in sources {
        for found in defined.captures_iter(without_tests(text)) {
            types.entry(found[1].to_owned()).or_default().insert(file);
        }
    }
    types
}

/// The words of a name in camel case.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut starts: Vec<usize> = name.char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| at).collect();
    starts.push(name.len());
    (1..starts.len()).map(move |next| &name[starts[next - 1]..starts[next]])
}

#[test]
fn no_two_public_types_share_a_name() {
    let sources = sources();
    let types = types(&sources);
    assert!(types.len() > 700, "only {} types were found", types.len());
    let shared: Vec<_> = types.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(shared.is_empty(), "{shared:#?}");
}

#[test]
fn types_use_the_terms_of_the_field() {
    let sources = sources();
    let types = types(&sources);
    let old: Vec<String> = types
        .keys()
        .filter_map(|name| {
            let (word, instead) = OLD.iter().find(|(old, _)| words(name).any(|word| word == *old))?;
            Some(format!("{name}: not {word}, but {instead}"))
        })
        .collect();
    assert!(old.is_empty(), "{old:#?}");
}

#[test]
fn modules_use_the_terms_of_the_field() {
    let sources = sources();
    assert!(sources.len() > 500, "only {} files were found", sources.len());
    let old: BTreeSet<String> = OLD.iter().map(|(word, _)| word.to_lowercase()).collect();
    let is_old = |word: &str| old.contains(word) || OLD_MODULES.contains(&word);
    let named: Vec<&String> = sources.keys().filter(|file| file.split(['/', '_', '.']).any(is_old)).collect();
    assert!(named.is_empty(), "{named:#?}");
}

/// Two words are not old here: `oldest` is part of the name of a diagnostic, and what lies outside of a folder is just that.
#[test]
fn functions_and_constants_use_the_terms_of_the_field() {
    let sources = sources();
    let defined = Regex::new(r"(?m)^ *(?:pub(?:\([a-z]+\))? )?(?:const |async )*(?:fn|const|static) (\w+)").unwrap();
    let names: BTreeSet<String> = sources
        .values()
        .flat_map(|text| defined.captures_iter(without_tests(text)).map(|found| found[1].to_lowercase()))
        .collect();
    assert!(names.len() > 2_500, "only {} names were found", names.len());
    let old: BTreeSet<String> =
        OLD.iter().map(|(word, _)| word.to_lowercase()).filter(|word| word != "oldest" && word != "outside").collect();
    let is_old = |word: &str| old.contains(word) || OLD_FUNCTIONS.contains(&word);
    let named: Vec<&String> = names.iter().filter(|name| name.split('_').any(is_old)).collect();
    assert!(named.is_empty(), "{named:#?}");
}

#[test]
fn a_name_is_split_into_its_words() {
    assert_eq!(words("RefusedReply").collect::<Vec<_>>(), ["Refused", "Reply"]);
    assert_eq!(words("Message").collect::<Vec<_>>(), ["Message"]);
    assert_eq!(words("lower").count(), 0);
}
