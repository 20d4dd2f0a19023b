//! `--help` and errors in arguments, in the language of the person.

use std::borrow::Cow;

use bcc_lang::message::msg;
use clap::builder::{PossibleValue, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};

use bcc_lang::message::language::Language;
use bcc_lang::message::library::library;
use bcc_lang::message::message::{Joint, Message};

/// The command with its texts in `language`.
pub fn in_language(mut command: Command, language: Language) -> Command {
    if language == Language::English {
        return command;
    }
    // Adds `--help`, `--version` and the command `help`, whose texts are translated too.
    command.build();
    translate_command(command, language)
}

/// The text of `--help`, or of an error in the arguments; none if the text of clap is used.
pub fn text(error: &Error, language: Language, color: bool) -> Option<String> {
    if language == Language::English {
        return None;
    }
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let help = error.render();
            let help = if color { help.ansi().to_string() } else { help.to_string() };
            // clap indents empty lines, too.
            Some(with_own_parts(&help, language).lines().map(|line| format!("{}\n", line.trim_end())).collect())
        }
        _ => argument_error(error, language),
    }
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
        .subcommand_help_heading(heading("Commands", language))
        .subcommand_value_name(language.translate("COMMAND").into_owned())
        .mut_args(|argument| translate_argument(argument, language));
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |inner| translate_command(inner, language));
    }
    command
}

/// A heading with the colon of the language. clap adds a colon of its own, which [`with_own_parts`] removes.
fn heading(text: &str, language: Language) -> String {
    Message::list(Joint::Colon, [word(text), Message::default()]).render(language)
}

/// What clap rendered, with the parts that it always writes in English in `language`.
fn with_own_parts(rendered: &str, language: Language) -> String {
    let colon = heading("", language);
    let mut text = rendered.replace(&format!("{colon}:"), &colon);
    // An argument with a heading of its own would be moved behind the others, so the headings of clap are replaced in the text.
    for own in ["Arguments", "Options"] {
        text = text.replace(&format!("{own}:"), &heading(own, language));
    }
    text.replace("[OPTIONS]", &language.translate("[OPTIONS]"))
}

/// Translates the texts of an argument. The default and the possible values, which clap would add in English, are added here.
fn translate_argument(mut argument: Arg, language: Language) -> Arg {
    if let Some(own) = argument.get_help_heading().map(|own| heading(own, language)) {
        argument = argument.help_heading(own);
    }
    let (default, values) = (default_value(&argument), possible_values(&argument));
    let names = Message::list(Joint::Item, values.iter().map(|value| Message::text(value.get_name())));
    let names = (!values.is_empty()).then(|| msg!("possible values: {values}", values = names));
    let short = argument.get_help().cloned();
    let long = argument.get_long_help().cloned();
    let described = values.iter().any(|value| value.get_help().is_some());
    if described && let Some(help) = long.as_ref().or(short.as_ref()) {
        let help = with_notes(&translated(help, language), default.clone().into_iter().collect(), language);
        argument = argument.long_help(format!("{help}\n\n{}", described_values(&values, language)));
    }
    let notes: Vec<Message> = default.into_iter().chain(names).collect();
    if !described && let Some(help) = &long {
        argument = argument.long_help(with_notes(&translated(help, language), notes.clone(), language));
    }
    if let Some(help) = &short {
        argument = argument.help(with_notes(&translated(help, language), notes, language));
    }
    argument.hide_default_value(true).hide_possible_values(true)
}

/// A text with notes in the brackets of the language. The text can end with such notes in `[ ]`, for example the default.
fn with_notes(text: &str, notes: Vec<Message>, language: Language) -> String {
    let (text, own) = match text.strip_suffix(']').and_then(|text| text.rsplit_once(" [")) {
        Some((text, own)) => (text, Some(Message::text(own))),
        None => (text, None),
    };
    let notes: Vec<Message> = own.into_iter().chain(notes).collect();
    if notes.is_empty() {
        return text.to_owned();
    }
    msg!("{text} [{notes}]", notes = Message::list(Joint::Semicolon, notes)).render(language)
}

fn default_value(argument: &Arg) -> Option<Message> {
    let defaults = argument.get_default_values();
    if !takes_value(argument) || defaults.is_empty() || argument.is_hide_default_value_set() {
        return None;
    }
    let defaults = defaults.iter().map(|value| Message::text(value.to_string_lossy()));
    Some(msg!("default: {values}", values = Message::list(Joint::Item, defaults)))
}

fn possible_values(argument: &Arg) -> Vec<PossibleValue> {
    if !takes_value(argument) || argument.is_hide_possible_values_set() {
        return Vec::new();
    }
    argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect()
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// The possible values with their descriptions, one on each line.
fn described_values(values: &[PossibleValue], language: Language) -> String {
    let described = values.iter().map(|value| {
        let name = Message::text(value.get_name());
        let help = value.get_help().map(|help| word(&help.to_string()));
        format!("\n- {}", Message::list(Joint::Colon, std::iter::once(name).chain(help)).render(language))
    });
    heading("Possible values", language) + &described.collect::<String>()
}

/// A text of the command line, which the catalogue translates as a whole.
fn word(text: &str) -> Message {
    Message::Word(Cow::Owned(text.to_owned()))
}

fn translated(text: &StyledStr, language: Language) -> String {
    word(&text.to_string()).render(language)
}

fn argument_error(error: &Error, language: Language) -> Option<String> {
    let mut text = msg!("error: {error}", error = error_message(error)?).render(language);
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        for near in values_of(error, kind) {
            text.push_str("\n\n  ");
            text.push_str(&msg!("help: did you mean `{near}`?").render(language));
        }
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        let usage = with_own_parts(usage.strip_prefix("Usage: ").unwrap_or(&usage), language);
        text.push_str(&format!("\n\n{}{usage}", language.translate("Usage:")));
    }
    text.push_str(&format!("\n\n{}\n", language.translate("For more information, use `--help`.")));
    Some(text)
}

/// The parts of an error.
fn values_of(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        Some(ContextValue::Number(number)) => vec![number.to_string()],
        _ => Vec::new(),
    }
}

fn error_message(error: &Error) -> Option<Message> {
    let of = |kind| Message::list(Joint::Item, values_of(error, kind).into_iter().map(Message::text));
    let (argument, value) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue));
    let (other, valid) = (of(ContextKind::PriorArg), of(ContextKind::ValidValue));
    Some(match error.kind() {
        ErrorKind::UnknownArgument => msg!("unexpected argument `{argument}`"),
        ErrorKind::InvalidSubcommand => {
            msg!("there is no command `{command}`", command = of(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingSubcommand => msg!("a command is missing"),
        ErrorKind::MissingRequiredArgument => msg!("these arguments are missing: {argument}"),
        ErrorKind::ArgumentConflict if other.is_empty() || other == argument => {
            msg!("`{argument}` is given more than once")
        }
        ErrorKind::ArgumentConflict => msg!("`{argument}` cannot be given together with `{other}`"),
        ErrorKind::InvalidValue if value.is_empty() => msg!("`{argument}` needs a value"),
        ErrorKind::InvalidValue if valid.is_empty() => msg!("`{value}` is not a valid value for `{argument}`"),
        ErrorKind::InvalidValue => msg!("`{value}` is not a valid value for `{argument}`; valid values: {valid}"),
        ErrorKind::ValueValidation => {
            let message = msg!("`{value}` is not a valid value for `{argument}`");
            match std::error::Error::source(error).map(ToString::to_string).filter(|reason| !reason.is_empty()) {
                Some(reason) => msg!("{message} ({reason})", reason = library(&reason)),
                None => message,
            }
        }
        ErrorKind::TooFewValues => msg!(
            "`{argument}` needs at least {least} values, but has {found}",
            least = of(ContextKind::MinValues),
            found = of(ContextKind::ActualNumValues)
        ),
        ErrorKind::NoEquals => msg!("`{argument}` needs an equals sign before its value"),
        ErrorKind::TooManyValues => msg!("`{value}` is one value too many for `{argument}`"),
        ErrorKind::InvalidUtf8 => msg!("an argument is not valid UTF-8"),
        _ => return None,
    })
}
