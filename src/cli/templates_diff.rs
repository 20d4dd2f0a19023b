//! `templates diff`: a unified diff on standard output, missing fields and names on standard error, and the exit codes of diff(1).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::{DIFF_CODES, Exit};
use crate::cli::print::write_out;
use crate::cli::report;
use bcc_authoring::templates::catalog::TemplateCatalog;
use bcc_authoring::templates::diff::{ComparisonBase, TemplateDifference, diff as differences, likely_source};
use bcc_authoring::templates::project::{directory, scheme_of_project};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::source::render::visible::visible;
use bcc_lang::template::layers::DEFAULT_SCHEME;

#[derive(Debug, Args)]
#[command(after_help = DIFF_CODES)]
pub struct DiffArgs {
    /// Template to compare [default: all that differ]
    pub name: Option<String>,
    /// Scheme to compare [default: that of bcc-script.toml, otherwise `default`]
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Version, if NAME does not specify one [default: 1]
    #[arg(long, value_name = "N", requires = "name", value_parser = clap::value_parser!(u32).range(1..=999))]
    pub version: Option<u32>,
    /// Scheme to compare with [default: `default`, or the built-in one when comparing `default`]
    #[arg(long, value_name = "SCHEME", conflicts_with = "against_built_in")]
    pub against: Option<String>,
    /// Compare with the built-in templates of the scheme
    #[arg(long)]
    pub against_built_in: bool,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Errors: `Usage` when the schemes cannot be compared: exit code 2, as with diff(1).
pub fn diff(options: &DiffArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = directory(options.project.as_deref(), environment)?;
    let scheme = match &options.scheme {
        Some(scheme) => scheme.clone(),
        None => scheme_of_project(&directory, environment)?.unwrap_or_else(|| DEFAULT_SCHEME.to_owned()),
    };
    let against = match &options.against {
        Some(other) => ComparisonBase::Scheme(other),
        None if options.against_built_in => ComparisonBase::BuiltIn,
        None => ComparisonBase::default_for(&scheme),
    };
    let catalog = TemplateCatalog::of(&directory);
    let typed = options.name.as_deref().map(|name| (name, options.version));
    let found = differences(&catalog, &scheme, against, typed)?;
    let text: String = found.iter().map(|difference| difference.unified.as_str()).collect();
    write(&text)?;
    let other = match against {
        ComparisonBase::Scheme(other) => msg!("the scheme `{other}`"),
        ComparisonBase::BuiltIn => msg!("the binary"),
    };
    for difference in &found {
        report_difference(difference, &scheme, &other);
    }
    if options.against.is_none()
        && !options.against_built_in
        && let Some(other) = likely_source(&catalog, &scheme)
    {
        report::note(&msg!(
            "`{scheme}` is closer to the scheme `{other}`: `bcc-script templates diff --scheme {scheme} --against {other}` compares it with that scheme"
        ));
    }
    let same = found.iter().all(|difference| difference.same);
    if same {
        report::quiet(&msg!("the templates of the scheme `{scheme}` are the same as those of {other}"));
    }
    Ok(match found.iter().any(|difference| difference.error.is_some()) {
        true => Exit::Usage,
        false if same => Exit::Done,
        false => Exit::Failed,
    })
}

/// Reports what is not obvious from the diff.
fn report_difference(difference: &TemplateDifference, scheme: &str, other: &Message) {
    let name = &difference.name;
    if let Some(error) = &difference.error {
        report::note(error);
    }
    if difference.has_errors {
        report::note(&msg!("{name}: one of the two files has an error; `bcc-script templates check` shows it"));
    }
    if !difference.missing_fields.is_empty() {
        let fields = Message::names(&difference.missing_fields);
        report::note(&msg!("{name}: {other} asks for these fields of the reply, but `{scheme}` does not: {fields}"));
    }
    if !difference.missing_names.is_empty() {
        let names = Message::names(&difference.missing_names);
        report::note(&msg!("{name}: {other} uses these names, but `{scheme}` does not: {names}"));
    }
    if difference.line_ends {
        report::note(&msg!("{name}: one of the two files has CR LF line endings; this is not shown as a difference"));
    }
}

fn write(text: &str) -> Result<(), EngineError> {
    let text = if io::stdout().is_terminal() { colored(text) } else { text.to_owned() };
    write_out(text.as_bytes())
}

fn colored(text: &str) -> String {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return visible(text);
    }
    let color = |line: &str| match line.as_bytes().first() {
        _ if line.starts_with("+++ ") || line.starts_with("--- ") => "\u{1b}[1m",
        Some(b'+') => "\u{1b}[32m",
        Some(b'-') => "\u{1b}[31m",
        Some(b'@') => "\u{1b}[36m",
        _ => "",
    };
    let line = |line: &str| {
        let (color, line) = (color(line), visible(line));
        if color.is_empty() { format!("{line}\n") } else { format!("{color}{line}\u{1b}[0m\n") }
    };
    text.lines().map(line).collect()
}
