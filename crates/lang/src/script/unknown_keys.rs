//! Keys that nobody asked for: what was most likely meant by each, and what stands in it that should stand behind it.

use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::{Fields, is_null, shortened};
use crate::script::legacy_fields::is_older_output;
use crate::script::other_names::{is_other_name, meant_by};
use crate::source::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::misreading::full_width_colon_help;
use crate::source::near::{near_miss, plural, slip};
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

impl Fields<'_> {
    /// [`Fields::finish`] with advice for keys that belong elsewhere.
    pub fn finish_with(self, elsewhere: impl Fn(&str) -> Option<Message>) {
        let asked = self.asked.borrow();
        let (mut named, mut unknown) = (Vec::new(), Vec::new());
        for (entry, used) in self.entries.iter().zip(&self.used) {
            let key = entry.key.value.as_str();
            if used.get() || key.starts_with("x-") {
                continue;
            }
            let free = |field: &str| asked.contains(&field) && !self.has(field);
            if let Some(glued) = glued(self.file, entry) {
                self.missing.borrow_mut().retain(|(names, _)| !names.contains(&glued.field));
                self.took_in(entry, &glued, free(glued.field));
                continue;
            }
            let other = meant_by(key, &entry.value, free);
            let elsewhere = elsewhere(key).filter(|_| other.is_none());
            // A key that must be there and is not is what was most likely meant.
            let may_be_near = elsewhere.is_none() && !is_other_name(key);
            let lacking: Vec<_> = self.missing.borrow().iter().flat_map(|(names, _)| names.clone()).collect();
            let missing = || near_miss(key, lacking.iter().copied());
            let near =
                other.or_else(|| may_be_near.then(|| missing().or_else(|| near_miss(key, asked.iter().copied())))?);
            // Several fields run into one key: `{ get：称呼，define：名字 }`. To rename it would take away the rest of it.
            let wide = key.split_once('：').map(|(key, _)| key.trim()).filter(|key| asked.contains(key));
            let near = near.filter(|_| !key.contains([':', '：']));
            let meant = near.or(wide);
            let elsewhere = elsewhere.or(wide.map(|_| full_width_colon_help()));
            self.missing.borrow_mut().retain(|(names, _)| !meant.is_some_and(|meant| names.contains(&meant)));
            // Of this one alone: nothing else can be meant.
            let slip_of = |name: &str| self.is_slip_of(entry, name);
            let others = || asked.iter().any(|name| near != Some(*name) && slip(key, name));
            let sure = other.is_none() && near.is_some_and(slip_of) && !others();
            named.extend(near);
            unknown.push((entry, near, elsewhere, sure));
        }
        for (entry, near, elsewhere, sure) in unknown {
            // Two keys that mean the same one would make it stand twice.
            let free = |near: &str| !self.has(near) && named.iter().filter(|name| **name == near).count() == 1;
            self.unknown(entry, near, elsewhere, sure && near.is_some_and(free));
        }
        // What is left is reported by `drop`.
    }

    fn unknown(&self, entry: &YamlEntry, near: Option<&str>, elsewhere: Option<Message>, sure: bool) {
        let message = msg!("{} has no field `{}`", self.what, shortened(&entry.key.value));
        let help = elsewhere.unwrap_or_else(|| match near {
            Some(near) => msg!("did you mean `{near}`?"),
            // `{ define: one thing, and another }`: what follows the comma is a key without a value.
            None if entry.key.value.contains(char::is_whitespace) && is_absent(&entry.value) => Message::word(
                "inside `{ }` and `[ ]`, a comma ends the text: put the whole text, up to here, in quotes",
            ),
            None => {
                let mut known = self.asked.borrow().clone();
                known.retain(|name| !is_older_output(name));
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

    /// Reports a key that took its value in. Nothing of it is taken away: that would be what the author wrote.
    fn took_in(&self, entry: &YamlEntry, glued: &Glued<'_>, known: bool) {
        let message = msg!("{} has no field `{}`", self.what, shortened(&entry.key.value));
        let help = if glued.wide {
            full_width_colon_help()
        } else {
            msg!("put a space after the `:`; without one, the whole text is a field name")
        };
        let title = msg!("write `{}`", shortened(&glued.text));
        let edits = vec![Edit::replace(entry.key.span, glued.text.as_str())];
        let diagnostic = Diagnostic::error("unknown-key", message, self.file, entry.key.span).with_help(help);
        self.findings.report(diagnostic.with_fixes([Fix::sure(title, edits).only_sure_if(known)]));
    }

    /// Whether `entry` can be nothing but `name`, mistyped.
    fn is_slip_of(&self, entry: &YamlEntry, name: &str) -> bool {
        let typed = entry.key.value.as_str();
        let shape = self.shapes.borrow().iter().find(|(other, _)| *other == name).map(|(_, shape)| *shape);
        match shape {
            Some(shape) => (slip(typed, name) || plural(typed, name)) && shape.fits(&entry.value),
            None => slip(typed, name),
        }
    }
}

/// A key with its value inside: `{ content:Hi }` and `{ get：age }` have a field without a value to YAML.
struct Glued<'e> {
    /// What stands before the colon.
    field: &'e str,
    /// Both, as they were meant.
    text: String,
    /// Whether the colon is a full-width one.
    wide: bool,
}

fn glued<'e>(file: &'e SourceFile, entry: &YamlEntry) -> Option<Glued<'e>> {
    let raw = file.slice(entry.key.span);
    if !is_absent(&entry.value) || raw.starts_with(['"', '\'']) {
        return None;
    }
    let colon = raw.find([':', '：'])?;
    let (field, rest) = raw.split_at(colon);
    let wide = rest.starts_with('：');
    let (field, value) = (field.trim_end(), rest.trim_start_matches([':', '：']).trim_start());
    let is_name = !field.is_empty() && field.chars().all(|c| c.is_alphanumeric() || c == '_');
    // What has such a sign inside of it would be cut in two again, or is the address of something.
    let plain = !value.is_empty() && !value.starts_with('/') && !value.contains([':', '：']);
    (is_name && plain).then(|| Glued { field, text: format!("{field}: {value}"), wide })
}

/// Whether nothing at all is written where the value would stand.
fn is_absent(node: &YamlNode) -> bool {
    is_null(node) && node.as_scalar().is_some_and(|scalar| scalar.text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::script::findings::Findings;
    use crate::source::compose::parse;

    fn help_of_the_unknown_key_in(text: &str) -> String {
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
        for text in ["{ define: one thing, and another }", "{ define: 一件事, 还有 一件 }"] {
            assert!(help_of_the_unknown_key_in(text).contains("a comma ends the text"), "{text}");
        }
        assert!(help_of_the_unknown_key_in("{ define: one, defin: 5 }").contains("did you mean `define`?"));
        for text in ["{ define: one, and another: 5 }", "{ define: one, another }", "and another: ~\n"] {
            assert!(help_of_the_unknown_key_in(text).contains("allowed here: define"), "{text}");
        }
    }
}
