//! Reads the `bcc-script.toml` of a project, and reports its errors as findings.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use bcc_check::levels::RuleLevels;
use bcc_engine::config::config::{Config, advice, message as config_message, read};
use bcc_engine::config::places::{ConfigError, ConfigSource};
use bcc_engine::config::secrets::masked;
use bcc_engine::config::validation::errors;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::unreadable;
use bcc_engine::project::{CONFIG_FILE, config_bytes};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use toml::{Table, Value};

/// The maximum number of findings per file.
const MAX_REPORTED: usize = 20;

/// What is known of the configuration of a project.
#[derive(Debug, Default)]
pub struct KnownConfiguration {
    /// The default one if there is none, or if more than `[rules]` cannot be read.
    pub config: Config,
    /// The file, if it is valid text.
    pub file: Option<Arc<SourceFile>>,
    /// The names of its models, also of those with errors; `None` if the file is not valid TOML.
    pub models: Option<Vec<String>>,
    /// Whether `config` is complete: at most `[rules]` has errors.
    pub is_complete: bool,
}

/// The configuration of the project in `directory`. Errors are added to `diagnostics`.
pub fn configuration(directory: &Path, names: &PathNames, diagnostics: &mut Vec<Diagnostic>) -> KnownConfiguration {
    let shown = names.display_name(&directory.join(CONFIG_FILE));
    let file = match config_bytes(directory) {
        Ok(None) => {
            return KnownConfiguration { models: Some(vec![]), is_complete: true, ..KnownConfiguration::default() };
        }
        Ok(Some(bytes)) => SourceFile::from_bytes(shown, bytes).map_err(|diagnostic| *diagnostic),
        Err(error) => Err(unreadable(&shown, error.to_message())),
    };
    let file = match file {
        Ok(file) => Arc::new(file),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            return KnownConfiguration::default();
        }
    };
    let tables: Option<Table> = toml::from_str(file.text()).ok();
    let models = tables.as_ref().and_then(models);
    let (config, is_complete) = match read(file.text()) {
        Ok(config) => {
            let errors = errors(&config);
            let is_complete = errors.iter().all(is_of_rules);
            diagnostics.extend(contradictions(&file, errors));
            (config, is_complete)
        }
        Err(error) => {
            diagnostics.extend(mistakes(&file, error));
            let rest = tables.and_then(with_readable_rules);
            let is_complete = rest.as_ref().is_some_and(|config| errors(config).iter().all(is_of_rules));
            (rest.unwrap_or_default(), is_complete)
        }
    };
    KnownConfiguration { config, file: Some(file), models, is_complete }
}

/// The table with the levels of rules.
const RULES: &str = "rules";

fn is_of_rules(error: &ConfigError) -> bool {
    error.path.first().is_some_and(|table| table == RULES)
}

/// The names of the models, or `None` if it is not known which ones are meant.
fn models(tables: &Table) -> Option<Vec<String>> {
    match tables.get("models") {
        None => Some(vec![]),
        Some(models) => Some(models.as_table()?.keys().cloned().collect()),
    }
}

/// The configuration without the levels of rules that are not texts, if everything else can be read.
fn with_readable_rules(mut tables: Table) -> Option<Config> {
    match tables.get_mut(RULES).and_then(Value::as_table_mut) {
        Some(rules) => rules.retain(|_, level| level.is_str()),
        None => _ = tables.remove(RULES),
    }
    tables.try_into().ok()
}

/// The rule of findings in a configuration.
pub const BROKEN: &str = "broken-configuration";

/// The errors of a configuration: each invalid line is removed in turn to find further errors.
fn mistakes(file: &Arc<SourceFile>, error: toml::de::Error) -> Vec<Diagnostic> {
    let mut found = vec![mistake(file, &error)];
    let mut text = file.text().to_owned();
    let mut next = Some(error);
    while let Some(error) = next.take().filter(|_| found.len() < MAX_REPORTED) {
        let Some(rest) = error.span().and_then(|span| without_line(&text, span.start)) else { break };
        text = rest;
        // A missing value may have been in a removed line.
        match read(&text) {
            Ok(config) => {
                let errors = errors(&config).into_iter().filter(|fault| fault.path.len() > 2);
                found.extend(contradictions(file, errors.collect()));
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

/// The text with the line at `at` replaced by spaces, if it is a key-value line and the result is valid TOML.
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

/// The errors of a configuration that can be read. Its other settings still apply.
fn contradictions(file: &Arc<SourceFile>, errors: Vec<ConfigError>) -> Vec<Diagnostic> {
    if errors.is_empty() {
        return Vec::new();
    }
    let (places, shown) = (ConfigSource::of(file.text()), shown(file));
    let findings = errors.into_iter().take(MAX_REPORTED).map(|error| {
        let place = places.as_ref().map_or(0..0, |places| places.span(&error.path));
        Diagnostic::error(BROKEN, error.message, &shown, Span::new(place.start, place.end)).with_help(error.help)
    });
    findings.collect()
}

/// The file for reports, with keys masked that reports do not recognize themselves.
fn shown(file: &Arc<SourceFile>) -> Arc<SourceFile> {
    let masked = masked(file.text());
    if masked == file.text() { Arc::clone(file) } else { Arc::new(SourceFile::new(file.name(), masked)) }
}

/// The configured rule levels. Invalid settings, which [`configuration`] reports, are left out, and the others apply.
pub fn levels(config: &Config, rules: &[(String, String)]) -> RuleLevels {
    let configured = config.rules.iter().filter(|(slug, level)| RuleLevels::parse([(slug, level)]).is_ok());
    // Those of the command line were validated when it was parsed.
    RuleLevels::parse(configured.chain(rules.iter().map(|(slug, level)| (slug, level)))).unwrap_or_default()
}
