//! The `bcc-script.toml` of a project, with what is wrong with it as findings at their places.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use bcc_check::levels::RuleLevels;
use bcc_engine::config::config::{Config, advice, message as config_message, place, read};
use bcc_engine::config::places::{ConfigError, ConfigSource};
use bcc_engine::config::secrets::masked;
use bcc_engine::config::validation::faults;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::unreadable;
use bcc_engine::project::{CONFIG_FILE, config_bytes};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// The most that are told of one file.
const MOST_MISTAKES: usize = 20;

/// The configuration of the project in `directory`, and its file when that is a text. What is wrong with it goes to
/// `diagnostics`, and stands for nothing.
pub fn configuration(
    directory: &Path,
    names: &PathNames,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Config, Option<Arc<SourceFile>>) {
    let shown = names.shown(&directory.join(CONFIG_FILE));
    let file = match config_bytes(directory) {
        Ok(None) => return (Config::default(), None),
        Ok(Some(bytes)) => SourceFile::from_bytes(shown, bytes).map_err(|diagnostic| *diagnostic),
        Err(error) => Err(unreadable(&shown, Message::text(error.to_string()))),
    };
    let file = match file {
        Ok(file) => Arc::new(file),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            return (Config::default(), None);
        }
    };
    match read(file.text()) {
        Ok(config) => {
            diagnostics.extend(contradictions(&file, faults(&config)));
            (config, Some(file))
        }
        Err(error) => {
            diagnostics.extend(mistakes(&file, error));
            (Config::default(), Some(file))
        }
    }
}

/// The slug of what is wrong with a configuration.
pub const BROKEN: &str = "broken-configuration";

/// What is wrong, as far as lines that are wrong can be left out to see what is wrong with the rest.
fn mistakes(file: &Arc<SourceFile>, error: toml::de::Error) -> Vec<Diagnostic> {
    let mut found = vec![mistake(file, &error)];
    let mut text = file.text().to_owned();
    let mut next = Some(error);
    while let Some(error) = next.take().filter(|_| found.len() < MOST_MISTAKES) {
        let Some(rest) = error.span().and_then(|span| without_line(&text, span.start)) else { break };
        text = rest;
        // What is missing may have stood in a line that was left out.
        match read(&text) {
            Ok(config) => {
                let told = faults(&config).into_iter().filter(|fault| fault.at.len() > 2);
                found.extend(contradictions(file, told.collect()));
            }
            Err(error) if error.message().starts_with("missing field") => {}
            Err(error) => {
                found.push(mistake(file, &error));
                next = Some(error);
            }
        }
    }
    found
}

/// The same text with spaces in the place of the line that `at` lies in, when it gives a key its value and the rest is TOML.
fn without_line(text: &str, at: usize) -> Option<String> {
    let at = text.floor_char_boundary(at);
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next().filter(|line| line.contains('='))?;
    let mut rest = text.to_owned();
    rest.replace_range(start..start + line.len(), &" ".repeat(line.len()));
    toml::from_str::<toml::Table>(&rest).is_ok().then_some(rest)
}

fn mistake(file: &Arc<SourceFile>, error: &toml::de::Error) -> Diagnostic {
    let span = error.span().map_or(Span::default(), |span| Span::new(span.start, span.end));
    let message = msg!("the configuration cannot be read: {}", config_message(error, file.text()));
    Diagnostic::error("broken-configuration", message, &shown(file), span).with_help(advice(error))
}

/// What is wrong with a configuration that can be read. What it says of everything else counts all the same.
fn contradictions(file: &Arc<SourceFile>, faults: Vec<ConfigError>) -> Vec<Diagnostic> {
    if faults.is_empty() {
        return Vec::new();
    }
    let (places, shown) = (ConfigSource::of(file.text()), shown(file));
    let told = faults.into_iter().take(MOST_MISTAKES).map(|fault| {
        let place = places.as_ref().map_or(0..0, |places| places.span(&fault.at));
        Diagnostic::error(BROKEN, fault.message, &shown, Span::new(place.start, place.end)).with_help(fault.help)
    });
    told.collect()
}

/// The file as reports may show it: a key that does not look like one is none that they mask by themselves.
fn shown(file: &Arc<SourceFile>) -> Arc<SourceFile> {
    let masked = masked(file.text());
    if masked == file.text() { Arc::clone(file) } else { Arc::new(SourceFile::new(file.name(), masked)) }
}

/// The levels that are set. A setting that cannot be is told, and the others count.
pub fn levels(
    config: &Config,
    file: Option<&Arc<SourceFile>>,
    rules: &[(String, String)],
    diagnostics: &mut Vec<Diagnostic>,
) -> RuleLevels {
    let mut set: Vec<(&str, &str)> = Vec::new();
    for (slug, level) in &config.rules {
        let wrong = RuleLevels::parse([(slug, level)]).err();
        match (wrong, file) {
            (None, _) => set.push((slug, level)),
            (Some(error), Some(file)) => {
                let place = place(file.text(), "rules", slug).unwrap_or_default();
                let span = Span::new(place.start, place.end);
                let diagnostic = Diagnostic::error(BROKEN, error.to_message(), file, span);
                diagnostics.push(diagnostic.with_help(error.help()));
            }
            (Some(_), None) => {}
        }
    }
    set.extend(rules.iter().map(|(slug, level)| (slug.as_str(), level.as_str())));
    // Each pair was looked at before: those of the file above, those of the command line where it is read.
    RuleLevels::parse(set).unwrap_or_default()
}
