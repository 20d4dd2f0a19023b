//! `unused-template`: a file that looks like a template, but whose name is never looked up.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashSet;

use crate::templates::layout::{Layout, is_in_layer};
use crate::templates::template_set::{SystemFile, TemplateConsumer};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;

/// The name and version of a template file, such as `ai_ask` and 1 of `ai_ask_v1.md`, in the exact form of lookups.
pub fn name_and_version(file: &str) -> Option<(&str, u32)> {
    let (name, version) = file.strip_suffix(".md")?.rsplit_once("_v")?;
    let number: u32 = version.parse().ok()?;
    ((1..=999).contains(&number) && number.to_string() == version).then_some((name, number))
}

/// Checks the names of all files. `used` are the files that are or are included by a template of some scheme
/// (`default/part.md`); `computed`: some template includes others by computed names.
pub fn check(
    layout: &Layout<'_>,
    consumers: &[TemplateConsumer],
    used: &HashSet<String>,
    computed: bool,
) -> Vec<Diagnostic> {
    // Several kinds may use one template.
    let mut known: Vec<&str> = Vec::new();
    for name in consumers.iter().map(|consumer| consumer.kind) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let mut found = Vec::new();
    for (file, place, name) in &layout.layered {
        if used.contains(&format!("{place}/{name}")) || is_shadow(name, &known) || computed {
            continue;
        }
        let help = match meant(name, &known) {
            Some(meant) => msg!("templates must be named `<kind>_v<number>.md`: did you mean `{meant}`?"),
            None if name_and_version(name).is_some() => {
                msg!("no action type uses a template with this name; available names: {}", Message::names(&known))
            }
            None => continue,
        };
        found.push(diagnostic(file, "this template is never used: its name is never looked up", help));
    }
    for file in &layout.strays {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let Some(meant) = meant(name, &known) else { continue };
        if is_in_layer(&file.path) && !file.path.ends_with(".md") {
            let message = "this template is never used: the file name of a template must end in `.md`";
            found.push(diagnostic(file, message, msg!("rename it to `{meant}`")));
            continue;
        }
        let help = msg!(
            "move it to `_system/config/default/`, or for a scheme to `_system/config/custom/<scheme>/`, as `{meant}`"
        );
        found.push(diagnostic(file, "this template is never used: it is outside the folders that are searched", help));
    }
    found
}

/// Whether the name is looked up, but another file takes precedence in this place: other schemes use this file.
fn is_shadow(name: &str, known: &[&str]) -> bool {
    name_and_version(name).is_some_and(|(name, _)| known.contains(&name))
}

fn diagnostic(file: &SystemFile, message: &'static str, help: Message) -> Diagnostic {
    Diagnostic::warning("unused-template", message, &file.source, Span::default()).with_help(help)
}

/// The template name that a file name probably means.
fn meant(file: &str, known: &[&str]) -> Option<String> {
    let lower = file.to_lowercase();
    let (stem, extension) = lower.rsplit_once('.')?;
    if !["md", "markdown", "txt", "jinja", "j2"].contains(&extension) {
        return None;
    }
    let stem: String = stem.chars().map(|c| if matches!(c, '-' | ' ' | '.') { '_' } else { c }).collect();
    let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (base, number) = stem.split_at_checked(stem.len() - digits)?;
    let base = base.trim_end_matches('_');
    let versioned = digits > 0 || base.ends_with("_v");
    let base = base.strip_suffix("_v").or_else(|| base.strip_suffix("_version")).unwrap_or(base);
    let version = number.parse::<u32>().unwrap_or(1).clamp(1, 999);
    let name = known.iter().copied().find(|name| *name == base);
    // A similar name counts only if the file name has a version like a template.
    let name = name.or_else(|| near_miss(base, known.iter().copied()).filter(|_| versioned))?;
    Some(format!("{name}_v{version}.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intended_name_is_found() {
        let known = ["ai_ask", "ai_say", "ai_think", "reflection"];
        let table = [
            ("ai_ask.md", Some("ai_ask_v1.md")),
            ("ai-ask_v1.md", Some("ai_ask_v1.md")),
            ("ai_ask_v01.md", Some("ai_ask_v1.md")),
            ("ai_ask_V2.md", Some("ai_ask_v2.md")),
            ("AI_Ask_v2.md", Some("ai_ask_v2.md")),
            ("ai_ask2.md", Some("ai_ask_v2.md")),
            ("ai_ask_v2.txt", Some("ai_ask_v2.md")),
            ("ai_asks_v2.md", Some("ai_ask_v2.md")),
            ("ai_tell_v1.md", None),
            ("README.md", None),
            ("part.md", None),
            ("ai_asks.md", None),
            ("ai_ask_v1.md~", None),
        ];
        for (file, expected) in table {
            assert_eq!(meant(file, &known).as_deref(), expected, "{file}");
        }
    }

    #[test]
    fn only_names_that_are_looked_up_have_a_version() {
        assert_eq!(name_and_version("ai_ask_v12.md"), Some(("ai_ask", 12)));
        for name in ["ai_ask_v01.md", "ai_ask_v0.md", "ai_ask_v1000.md", "ai_ask.md", "ai_ask_v+1.md", "ai_ask_v1.txt"]
        {
            assert_eq!(name_and_version(name), None, "{name}");
        }
    }
}
