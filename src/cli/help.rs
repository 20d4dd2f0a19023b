//! `--help` and errors in arguments, in the language of the person.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};

use bcc_lang::message::language::Language;
use bcc_lang::message::library::library;

/// The command with its texts in `language`.
pub fn in_language(mut command: Command, language: Language) -> Command {
    if language == Language::English {
        return command;
    }
    // Adds `--help`, `--version` and the command `help`, whose texts are translated too.
    command.build();
    translate_command(command, language)
}

fn translate_command(mut command: Command, language: Language) -> Command {
    let texts = (command.get_about().cloned(), command.get_long_about().cloned());
    if let (Some(about), _) = &texts {
        command = command.about(translated(about, language));
    }
    if let (_, Some(about)) = &texts {
        command = command.long_about(translated(about, language));
    }
    for help in
        [command.get_after_help().cloned(), command.get_after_long_help().cloned()].into_iter().flatten().take(1)
    {
        command = command.after_help(translated(&help, language));
    }
    let usage = language.translate("Usage:");
    command = command
        .help_template(format!("{{before-help}}{{about-with-newline}}\n{usage}{{usage}}\n\n{{all-args}}{{after-help}}"))
        .subcommand_help_heading(language.translate("Commands").into_owned())
        .mut_args(|argument| translate_argument(argument, language));
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |inner| translate_command(inner, language));
    }
    command
}

/// Translates the texts of an argument. The parts that clap would add in English are added here.
fn translate_argument(mut argument: Arg, language: Language) -> Arg {
    let added = added(&argument, language);
    let heading = argument.get_help_heading().unwrap_or(if argument.is_positional() { "Arguments" } else { "Options" });
    let heading = language.translate(heading).into_owned();
    argument = argument.help_heading(heading);
    let long = argument.get_long_help().cloned();
    if let Some(help) = argument.get_help().cloned() {
        argument = argument.help(format!("{}{added}", translated(&help, language)));
    }
    if let Some(help) = long {
        argument = argument.long_help(format!("{}{added}", translated(&help, language)));
    }
    argument.hide_default_value(true).hide_possible_values(true)
}

/// The default value and the possible values.
fn added(argument: &Arg, language: Language) -> String {
    let mut added = String::new();
    let comma = language.format(", ", &[]);
    let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    if !takes {
        return added;
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        added.push_str(&language.format(" [default: {values}]", &[("values", &defaults.join(&comma))]));
    }
    let values = argument.get_possible_values();
    let shown: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("{}（{}）", value.get_name(), translated(help, language)),
            None => value.get_name().to_owned(),
        })
        .collect();
    if !shown.is_empty() && !argument.is_hide_possible_values_set() {
        added.push_str(&language.format(" [possible values: {values}]", &[("values", &shown.join(&comma))]));
    }
    added
}

fn translated(text: &StyledStr, language: Language) -> String {
    let text = text.to_string();
    language.translate(&text).into_owned()
}

/// The text of an error in the arguments, for standard error; none if the message of clap is used.
pub fn argument_error(error: &Error, language: Language) -> Option<String> {
    if language == Language::English {
        return None;
    }
    let message = error_message(error, language)?;
    let mut text = language.format("error: {error}", &[("error", &message)]);
    let list = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    };
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        for near in list(kind) {
            text.push_str("\n\n  ");
            text.push_str(&language.format("help: did you mean `{near}`?", &[("near", &near)]));
        }
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
        text.push_str(&format!("\n\n{}{usage}", language.translate("Usage:")));
    }
    text.push_str(&format!("\n\n{}\n", language.translate("For more information, use `--help`.")));
    Some(text)
}

fn error_message(error: &Error, language: Language) -> Option<String> {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => one.clone(),
        Some(ContextValue::Strings(several)) => several.join(", "),
        Some(ContextValue::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let argument = of(ContextKind::InvalidArg);
    let values = [
        ("argument", argument.as_str()),
        ("value", &of(ContextKind::InvalidValue)),
        ("command", &of(ContextKind::InvalidSubcommand)),
        ("other", &of(ContextKind::PriorArg)),
        ("valid", &of(ContextKind::ValidValue)),
        ("least", &of(ContextKind::MinValues)),
        ("found", &of(ContextKind::ActualNumValues)),
    ];
    let filled = |literal: &str| Some(language.format(literal, &values));
    match error.kind() {
        ErrorKind::UnknownArgument => filled("unexpected argument `{argument}`"),
        ErrorKind::InvalidSubcommand => filled("there is no command `{command}`"),
        ErrorKind::MissingSubcommand => filled("a command is missing"),
        ErrorKind::MissingRequiredArgument => filled("these arguments are missing: {argument}"),
        ErrorKind::ArgumentConflict
            if of(ContextKind::PriorArg).is_empty() || of(ContextKind::PriorArg) == argument =>
        {
            filled("`{argument}` is given more than once")
        }
        ErrorKind::ArgumentConflict => filled("`{argument}` cannot be given together with `{other}`"),
        ErrorKind::InvalidValue if of(ContextKind::InvalidValue).is_empty() => filled("`{argument}` needs a value"),
        ErrorKind::InvalidValue if of(ContextKind::ValidValue).is_empty() => {
            filled("`{value}` is not a valid value for `{argument}`")
        }
        ErrorKind::InvalidValue => filled("`{value}` is not a valid value for `{argument}`; valid values: {valid}"),
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let message = filled("`{value}` is not a valid value for `{argument}`")?;
            Some(if reason.is_empty() {
                message
            } else {
                format!("{message}（{}）", library(&reason).render(language))
            })
        }
        ErrorKind::TooFewValues => filled("`{argument}` needs at least {least} values, but has {found}"),
        ErrorKind::NoEquals => filled("`{argument}` needs an equals sign before its value"),
        ErrorKind::TooManyValues => filled("`{value}` is one value too many for `{argument}`"),
        ErrorKind::InvalidUtf8 => filled("an argument is not valid UTF-8"),
        _ => None,
    }
}
