//! Reports unknown keys, with the field that was most likely meant, and keys that contain their value.

use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::{Fields, is_null, shortened};
use crate::script::legacy_fields::is_legacy_output;
use crate::script::other_names::{field_for, is_other_name};
use crate::source::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::misreading::full_width_colon_help;
use crate::source::near::{is_plural, is_typing_error, near_miss};
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

impl Fields<'_> {
    /// Like [`Fields::finish`], with help for keys that belong elsewhere.
    pub fn finish_with(self, elsewhere: impl Fn(&str) -> Option<Message>) {
        let requested = self.requested.borrow();
        let (mut suggested, mut unknown) = (Vec::new(), Vec::new());
        for (entry, used) in self.entries.iter().zip(&self.used) {
            let key = entry.key.value.as_str();
            if used.get() || key.starts_with("x-") {
                continue;
            }
            let free = |field: &str| requested.contains(&field) && !self.is_set(field);
            if let Some(joined_key) = joined_key(self.file, entry) {
                self.missing.borrow_mut().retain(|(names, _)| !names.contains(&joined_key.field));
                self.report_joined(entry, &joined_key, free(joined_key.field));
                continue;
            }
            let other = field_for(key, &entry.value, free);
            let elsewhere = elsewhere(key).filter(|_| other.is_none());
            // A required key that is missing is the most likely one.
            let may_be_near = elsewhere.is_none() && !is_other_name(key);
            let missing_names: Vec<_> = self.missing.borrow().iter().flat_map(|(names, _)| names.clone()).collect();
            // A field that is set already cannot be meant too.
            let unset = || requested.iter().copied().filter(|name| !self.is_set(name));
            let missing = || near_miss(key, missing_names.iter().copied());
            let near = other.or_else(|| may_be_near.then(|| missing().or_else(|| near_miss(key, unset())))?);
            // Several fields joined in one key: `{ get：称呼，define：名字 }`. Renaming it would remove the rest.
            let wide = key.split_once('：').map(|(key, _)| key.trim()).filter(|key| requested.contains(key));
            let near = near.filter(|_| !key.contains([':', '：']));
            let candidate = near.or(wide);
            let elsewhere = elsewhere.or(wide.map(|_| full_width_colon_help()));
            self.missing
                .borrow_mut()
                .retain(|(names, _)| !candidate.is_some_and(|candidate| names.contains(&candidate)));
            // Applies to this name alone: no other one can be meant.
            let is_typo = |name: &str| self.is_typo_of(entry, name);
            let others = || requested.iter().any(|name| near != Some(*name) && is_typing_error(key, name));
            let sure = other.is_none() && near.is_some_and(is_typo) && !others();
            suggested.extend(near);
            unknown.push((entry, near, elsewhere, sure));
        }
        for (entry, near, elsewhere, sure) in unknown {
            // Two keys that mean the same field would become duplicates.
            let free = |near: &str| !self.is_set(near) && suggested.iter().filter(|name| **name == near).count() == 1;
            self.report_unknown(entry, near, elsewhere, sure && near.is_some_and(free));
        }
        // Fields that are still missing are reported by `drop`.
    }

    /// Whether the field is written, under its name or a legacy one.
    fn is_set(&self, field: &str) -> bool {
        self.has(field) || self.legacy.iter().any(|(_, current)| current == field)
    }

    /// Whether any field is written under a legacy name.
    pub fn has_legacy_spellings(&self) -> bool {
        !self.legacy.is_empty()
    }

    fn report_unknown(&self, entry: &YamlEntry, near: Option<&str>, elsewhere: Option<Message>, sure: bool) {
        let message = msg!("{} has no field `{}`", self.subject, shortened(&entry.key.value));
        let help = elsewhere.unwrap_or_else(|| match near {
            Some(near) => msg!("did you mean `{near}`?"),
            // `{ define: one thing, and another }`: the text after the comma is a key without a value.
            None if is_rest_of_text(self.file, entry) => Message::word(
                "inside `{ }` and `[ ]`, a comma ends the text: put the whole text, up to here, in quotes",
            ),
            None => {
                let mut known = self.requested.borrow().clone();
                known.retain(|name| !is_legacy_output(name));
                known.sort_unstable();
                known.dedup();
                match known.is_empty() {
                    true => msg!("it has no fields at all; custom fields start with `x-`"),
                    false => msg!(
                        "allowed here: {}; custom fields start with `x-`",
                        Message::list(Joint::Item, known.into_iter().map(Message::text))
                    ),
                }
            }
        });
        let mut diagnostic = Diagnostic::error("unknown-key", message, self.file, entry.key.span).with_help(help);
        if let Some(near) = near {
            let edits = vec![Edit { span: entry.key.span, text: near.to_owned() }];
            diagnostic = diagnostic.with_fixes([Fix::sure(msg!("rename to `{near}`"), edits).only_sure_if(sure)]);
        }
        self.findings.report(diagnostic);
    }

    /// Reports a key that contains its value. The fix keeps all of the author's text.
    fn report_joined(&self, entry: &YamlEntry, joined_key: &JoinedKey<'_>, known: bool) {
        let message = msg!("{} has no field `{}`", self.subject, shortened(&entry.key.value));
        let help = if joined_key.wide {
            full_width_colon_help()
        } else {
            msg!("put a space after the `:`; without one, the whole text is a field name")
        };
        let title = msg!("write `{}`", shortened(&joined_key.text));
        let edits = vec![Edit::replace(entry.key.span, joined_key.text.as_str())];
        let diagnostic = Diagnostic::error("unknown-key", message, self.file, entry.key.span).with_help(help);
        self.findings.report(diagnostic.with_fixes([Fix::sure(title, edits).only_sure_if(known)]));
    }

    /// Whether `entry` can only be a misspelled `name`.
    fn is_typo_of(&self, entry: &YamlEntry, name: &str) -> bool {
        let typed = entry.key.value.as_str();
        let shape = self.shapes.borrow().iter().find(|(other, _)| *other == name).map(|(_, shape)| *shape);
        match shape {
            Some(shape) => {
                (is_typing_error(typed, name) || is_plural(typed, name)) && shape.fits(self.file, &entry.value)
            }
            None => is_typing_error(typed, name),
        }
    }
}

/// A key that contains its value: to YAML, `{ content:Hi }` and `{ get：age }` have a field without a value.
struct JoinedKey<'e> {
    /// The text before the colon.
    field: &'e str,
    /// The key and the value, as intended.
    text: String,
    /// Whether the colon is a full-width one.
    wide: bool,
}

fn joined_key<'e>(file: &'e SourceFile, entry: &YamlEntry) -> Option<JoinedKey<'e>> {
    let raw = file.slice(entry.key.span);
    if !is_absent(&entry.value) || raw.starts_with(['"', '\'']) {
        return None;
    }
    let colon = raw.find([':', '：'])?;
    let (field, rest) = raw.split_at(colon);
    let wide = rest.starts_with('：');
    let (field, value) = (field.trim_end(), rest.trim_start_matches([':', '：']).trim_start());
    let is_name = !field.is_empty() && field.chars().all(|c| c.is_alphanumeric() || c == '_');
    // A value with another colon would be split again, and one that starts with `/` is part of an address.
    let plain = !value.is_empty() && !value.starts_with('/') && !value.contains([':', '：']);
    (is_name && plain).then(|| JoinedKey { field, text: format!("{field}: {value}"), wide })
}

/// Whether a key without a value is probably what follows a comma in a text without quotes: a field is one ASCII word.
fn is_rest_of_text(file: &SourceFile, entry: &YamlEntry) -> bool {
    let before = file.text().get(..entry.key.span.start).unwrap_or_default().trim_end();
    let is_word = entry.key.value.chars().all(|c| c.is_ascii() && !c.is_whitespace());
    is_absent(&entry.value) && !is_word && before.ends_with(',')
}

/// Whether nothing is written in the place of the value.
fn is_absent(node: &YamlNode) -> bool {
    is_null(node) && node.as_scalar().is_some_and(|scalar| scalar.text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::script::findings::Findings;
    use crate::source::compose::parse;

    fn unknown_key_help(text: &str) -> String {
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let root = parse(&file).root.unwrap();
        let findings = Findings::new();
        let fields = Fields::of(&root, "this", &file, &findings).unwrap();
        fields.ignore("define");
        fields.finish();
        findings.into_vec().pop().unwrap().help.unwrap().to_string()
    }

    #[test]
    fn a_comma_that_ends_a_text_is_explained() {
        for text in [
            "{ define: one thing, and another }",
            "{ define: 一件事, 还有 一件 }",
            "{ define: 第一，好, 第二，也好 }",
            "{ define: 第一,\n  第二 }",
        ] {
            assert!(unknown_key_help(text).contains("a comma ends the text"), "{text}");
        }
        assert!(unknown_key_help("{ defin: 5 }").contains("did you mean `define`?"));
        for text in [
            "{ define: one, defin: 5 }",
            "{ define: one, and another: 5 }",
            "{ define: one, another }",
            "{ define: one, 还有: 二 }",
            "{ 还有 一件, define: one }",
            "and another: ~\n",
        ] {
            assert!(unknown_key_help(text).contains("allowed here: define"), "{text}");
        }
    }
}
