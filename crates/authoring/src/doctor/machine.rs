//! Checks the machine and the terminal: clock, locale, language, and whether input and output are terminals.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use jiff::tz::TimeZone;

use crate::doctor::finding::DoctorFinding;
use bcc_engine::clock::{now, stamp};
use bcc_engine::environment::Environment;
use bcc_lang::message::language::Language;

/// The first second of 2025: an earlier clock is wrong.
const EARLIEST_TIME: i64 = 1_735_689_600;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminals {
    pub input: bool,
    pub output: bool,
}

/// `is_requested`: whether `--lang` selects the language.
pub fn surroundings(
    terminals: &Terminals,
    language: Language,
    is_requested: bool,
    environment: &Environment,
) -> Vec<DoctorFinding> {
    let language = language_finding(language, is_requested, environment);
    vec![clock(environment), terminal(terminals, environment), encoding(environment), language]
}

fn clock(environment: &Environment) -> DoctorFinding {
    let time = now();
    let zone = TimeZone::system();
    if let Some(name) = environment.get("TZ").filter(|_| zone.is_unknown()) {
        return DoctorFinding::problem("clock", msg!("the time zone `{name}` in TZ cannot be found; all times are in UTC"))
            .with_help(
                "set TZ to the name of a time zone, such as `Asia/Shanghai`; if this is one, install the time zones of this system, which are usually the package `tzdata`",
            );
    }
    let message = match zone.iana_name() {
        Some(zone) => msg!("{} (time zone {zone})", stamp(time)),
        None => msg!("{} (the time zone of this computer)", stamp(time)),
    };
    if time.as_second() < EARLIEST_TIME {
        let problem = DoctorFinding::problem("clock", msg!("{message} cannot be right"));
        return problem
            .with_help("set the clock of this computer: sessions store times, and servers reject wrong ones");
    }
    DoctorFinding::ok("clock", message)
}

fn terminal(terminals: &Terminals, environment: &Environment) -> DoctorFinding {
    let kind = environment.get("TERM").unwrap_or("unknown");
    match (terminals.input, terminals.output) {
        (true, true) if kind == "dumb" => {
            DoctorFinding::note("terminal", "the terminal is `dumb`: input is read line by line, without colours")
        }
        (true, true) => DoctorFinding::ok("terminal", msg!("a terminal ({kind}): `run` is interactive")),
        _ => DoctorFinding::ok("terminal", "input or output is not a terminal: `run` reads and writes lines"),
    }
}

/// The first of these variables that is set.
fn first<'e>(environment: &'e Environment, names: &[&'static str]) -> Option<(&'static str, &'e str)> {
    names.iter().find_map(|name| Some((*name, environment.get(name)?)))
}

fn encoding(environment: &Environment) -> DoctorFinding {
    let help = "run `export LC_ALL=C.UTF-8`, or use another UTF-8 locale";
    match first(environment, &["LC_ALL", "LC_CTYPE", "LANG"]) {
        Some((name, value)) => {
            let letters: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            if letters.to_ascii_lowercase().contains("utf8") {
                DoctorFinding::ok("locale", msg!("{name}={value}: UTF-8"))
            } else {
                DoctorFinding::note(
                    "locale",
                    msg!("{name}={value} is not a UTF-8 locale; a terminal may display Chinese text incorrectly"),
                )
                .with_help(help)
            }
        }
        None => {
            let note =
                DoctorFinding::note("locale", "no locale is set; a terminal may display Chinese text incorrectly");
            note.with_help(help)
        }
    }
}

fn language_finding(language: Language, is_requested: bool, environment: &Environment) -> DoctorFinding {
    let name = Message::word(match language {
        Language::English => "English",
        Language::Chinese => "Chinese",
        Language::Pseudo => "the pseudo-language of the tests",
    });
    let other = Message::text(if language == Language::Chinese { "`--lang en`" } else { "`--lang zh`" });
    let message = match first(environment, &["BCC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"]) {
        _ if is_requested => msg!("messages are in {name}, as specified by `--lang`"),
        Some((variable, value)) => {
            msg!("messages are in {name}, because of {variable}={value}; use {other} to change the language")
        }
        None => msg!("messages are in {name}, the default; use {other} to change the language"),
    };
    DoctorFinding::ok("language", message)
}
