//! `explain`: prints the page of a diagnostic, or the list of all diagnostics.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::language::{chosen, filled, translated};
use crate::cli::print::write_out;
use crate::cli::table::padded;
use crate::cli::terminal::color;
use bcc_check::diagnostics::{DIAGNOSTICS, Page, near, page};
use bcc_engine::error::EngineError;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of the diagnostic, such as `unknown-key` [default: list all diagnostics]
    pub name: Option<String>,
}

/// The limit on suggestions for an unknown name.
const MAX_SUGGESTIONS: usize = 5;

/// Prints the page of a diagnostic as Markdown, with colors at a terminal; without a name, one line for each diagnostic.
pub fn explain(options: &ExplainArgs) -> Result<Exit, EngineError> {
    let styled = color();
    let text = match &options.name {
        None => list(styled),
        Some(name) => {
            let name = bare(name);
            let page = page(name).ok_or_else(|| unknown(name))?;
            let text = page.text(chosen());
            if styled { style(text) } else { text.to_owned() }
        }
    };
    write_out(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The name in a text copied from a report: `error[unknown-key]:`, `` `unknown-key` ``, `unknown-key.md`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(name, |(inner, _)| inner);
    let inner = inner.trim().trim_matches('`');
    inner.strip_suffix(".md").unwrap_or(inner)
}

fn unknown(name: &str) -> EngineError {
    let has_word = |page: &&Page| !name.is_empty() && page.slug.split('-').any(|word| word == name);
    let near = near(name);
    let others = DIAGNOSTICS.iter().filter(has_word).map(|page| page.slug).filter(|slug| Some(*slug) != near);
    let suggestions: Vec<String> =
        near.into_iter().chain(others).take(MAX_SUGGESTIONS).map(|slug| format!("`{slug}`")).collect();
    let help = match suggestions.as_slice() {
        [] => msg!("`bcc-script explain` lists all diagnostics"),
        several => msg!(
            "did you mean {}? `bcc-script explain` lists all diagnostics",
            Message::list(Joint::Or, several.iter().map(Message::text))
        ),
    };
    EngineError::usage(msg!("there is no diagnostic `{name}`")).with_help(help)
}

fn list(styled: bool) -> String {
    let width = DIAGNOSTICS.iter().map(|page| page.slug.len()).max().unwrap_or(0);
    let mut text = String::new();
    for page in DIAGNOSTICS {
        let (slug, severity) = (page.slug, padded(&translated(page.severity.name()), 7));
        let configurable = padded(&translated(if page.adjustable { "configurable" } else { "" }), 10);
        let slug = if styled { format!("{BOLD}{slug:width$}{PLAIN}") } else { format!("{slug:width$}") };
        text.push_str(&format!("{slug}  {severity}  {configurable}  {}\n", page.summary(chosen())));
    }
    let example = "deprecated-field=off";
    let literal = "`bcc-script explain NAME` shows the page of a diagnostic. To turn off a configurable diagnostic or change its level, use `--rule {example}` or `[rules]` in bcc-script.toml.";
    text.push_str(&format!("\n{}\n", filled(literal, &[("example", example)])));
    text
}

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Headings in bold, examples dimmed. The text is unchanged.
fn style(markdown: &str) -> String {
    let mut fenced = false;
    let mut text = String::new();
    for line in markdown.lines() {
        let fence = line.starts_with("```");
        let style = match () {
            () if fenced || fence => DIM,
            () if line.starts_with('#') => BOLD,
            () => "",
        };
        fenced ^= fence;
        let end = if style.is_empty() { "" } else { PLAIN };
        text.push_str(&format!("{style}{line}{end}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::message::language::Language;

    #[test]
    fn style_does_not_change_the_text_of_a_page() {
        for text in DIAGNOSTICS.iter().flat_map(|page| [Language::English, Language::Chinese].map(|it| page.text(it))) {
            let styled = style(text);
            assert!(styled.starts_with("\u{1b}[1m# ") && styled.contains("\u{1b}[2m```"));
            assert_eq!([BOLD, DIM, PLAIN].iter().fold(styled, |text, style| text.replace(style, "")), text);
        }
    }

    #[test]
    fn a_name_is_accepted_as_it_is_written_in_a_report() {
        for name in [
            "unknown-key",
            "error[unknown-key]",
            "error[unknown-key]:",
            "[unknown-key]",
            "`unknown-key`",
            "unknown-key.md",
        ] {
            assert_eq!(bare(name), "unknown-key");
        }
        assert_eq!(bare("[unknown-key"), "[unknown-key");
    }
}
