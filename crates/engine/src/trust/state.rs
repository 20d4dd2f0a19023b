//! Compares a project with what the user trusts, and describes what was changed since.

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::Path;

use crate::config::config::Config;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::pin::sha256;
use crate::project::CONFIG_FILE;
use crate::shell::quoted;
use crate::trust::covered::covered_files;
use crate::trust::{FileHashes, TrustEntry, entry};

/// The number of files that a message names for each sort of change.
const MAX_NAMED: usize = 10;

/// Whether the user trusts a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustState {
    #[default]
    Untrusted,
    /// With the hashes of the files that may run; none if the configuration allows neither code nor commands.
    Trusted { hashes: BTreeSet<String> },
    /// A project that may run code or commands was trusted, but is not the same any more.
    Changed { what: Message },
}

impl TrustState {
    /// Whether the user trusts the project `directory`, whose configuration has this text.
    pub(crate) fn of(
        environment: &Environment,
        directory: &Path,
        text: &[u8],
        config: &Config,
    ) -> Result<Self, EngineError> {
        Ok(match entry(environment, directory)? {
            Some(entry) => Self::of_entry(&entry, directory, text, config),
            None => Self::Untrusted,
        })
    }

    /// Compares a project with its entry.
    pub fn of_entry(entry: &TrustEntry, directory: &Path, text: &[u8], config: &Config) -> Self {
        let is_same = entry.config == sha256(text);
        let now = match covered_files(directory, config) {
            Ok(Some(now)) => now,
            Ok(None) if is_same => return Self::Trusted { hashes: BTreeSet::new() },
            Ok(None) => return Self::Untrusted,
            Err(reason) => return Self::Changed { what: reason },
        };
        let Some(files) = &entry.files else {
            let what = match is_same {
                true => msg!(
                    "an earlier release of bcc-script stored only your trust in {CONFIG_FILE}, and this project may run code or commands, so its scripts and programs must be trusted as well"
                ),
                false => {
                    msg!("{CONFIG_FILE} was changed since you trusted it, and the project may now run code or commands")
                }
            };
            return Self::Changed { what };
        };
        match changes(directory, files, &now, is_same) {
            None => Self::Trusted { hashes: now.into_values().collect() },
            Some(changes) => Self::Changed { what: msg!("files were changed since you trusted them: {changes}") },
        }
    }

    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted { .. })
    }

    /// Refuses to run anything of a project that was changed since it was trusted.
    ///
    /// # Errors
    /// `Usage`, which names what was changed and how to trust it.
    pub fn refuse_changes(&self, directory: &Path) -> Result<(), EngineError> {
        let Self::Changed { what } = self else { return Ok(()) };
        let message = msg!("the project {path} is not trusted any more: {what}", path = directory.display());
        Err(EngineError::usage(message).with_help(msg!(
            "review this, then run `bcc-script trust {}`, or add `--trust` for this run",
            quoted(directory)
        )))
    }
}

/// The differences between what was trusted and what is there; none if there are none. A file that is there and cannot run any more is none.
fn changes(directory: &Path, before: &FileHashes, now: &FileHashes, same_config: bool) -> Option<Message> {
    let in_both = before.iter().filter(|(name, hash)| now.get(*name).is_some_and(|current| current != *hash));
    let config = (!same_config).then_some(CONFIG_FILE);
    let changed: Vec<&str> = config.into_iter().chain(in_both.map(|(name, _)| name.as_str())).collect();
    let only_in = |one: &FileHashes, other: &FileHashes| -> Vec<String> {
        one.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
    };
    let (added, mut removed) = (only_in(now, before), only_in(before, now));
    removed.retain(|name| !directory.join(name).is_file());
    let added: Vec<&str> = added.iter().map(String::as_str).collect();
    let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
    let mut parts = Vec::new();
    for (sort, names) in [("changed", changed), ("new", added), ("removed", removed)] {
        if !names.is_empty() {
            parts.push(Message::list(Joint::Colon, [Message::word(sort), listed(&names)]));
        }
    }
    (!parts.is_empty()).then(|| Message::list(Joint::Semicolon, parts))
}

fn listed(names: &[&str]) -> Message {
    let shown = Message::list(Joint::Item, names.iter().take(MAX_NAMED).map(|name| Message::text(format!("`{name}`"))));
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => msg!("{} and {more} more", shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;
    use crate::project::absolute;
    use crate::trust::trust;
    use std::fs;

    /// The state of a project with this configuration.
    fn state(environment: &Environment, directory: &Path, text: &str) -> TrustState {
        let config = parse("bcc-script.toml", text).unwrap();
        TrustState::of(environment, directory, text.as_bytes(), &config).unwrap()
    }

    #[test]
    fn trust_ends_when_the_configuration_changes() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().to_string_lossy().into_owned())]);
        let project = Path::new("somewhere");
        let (one, other) = ("[project]\nscheme = \"a\"\n", "[project]\nscheme = \"b\"\n");
        assert_eq!(state(&environment, project, one), TrustState::Untrusted);
        trust(&environment, project, one.as_bytes(), None).unwrap();
        assert!(state(&environment, project, one).is_trusted());
        assert_eq!(state(&environment, project, other), TrustState::Untrusted);
        assert_eq!(state(&environment, Path::new("elsewhere"), one), TrustState::Untrusted);
    }

    #[test]
    fn changes_of_what_may_run_are_named() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().to_string_lossy().into_owned())]);
        let project = tempfile::tempdir().unwrap();
        let project = absolute(project.path());
        let text = "[project]\nallow = [\"exec\"]\n";
        for name in ["a.yaml", "b.py", "c.py"] {
            fs::write(project.join(name), name).unwrap();
        }
        let config = parse("bcc-script.toml", text).unwrap();
        trust(&environment, &project, text.as_bytes(), covered_files(&project, &config).unwrap()).unwrap();
        assert!(state(&environment, &project, text).is_trusted());
        fs::write(project.join("data.csv"), "1").unwrap();
        assert!(state(&environment, &project, text).is_trusted());
        fs::write(project.join("a.yaml"), "other").unwrap();
        fs::remove_file(project.join("b.py")).unwrap();
        fs::create_dir(project.join("later")).unwrap();
        fs::write(project.join("later/d.sh"), "").unwrap();
        let TrustState::Changed { what } = state(&environment, &project, text) else { panic!("it was changed") };
        let expected =
            "files were changed since you trusted them: changed: `a.yaml`; new: `later/d.sh`; removed: `b.py`";
        assert_eq!(what.to_string(), expected);
    }

    #[test]
    fn a_file_that_cannot_run_any_more_is_no_change() {
        let project = tempfile::tempdir().unwrap();
        let text = "[project]\nallow = [\"exec\"]\n";
        let before = FileHashes::from([("data.csv".to_owned(), "hash".to_owned())]);
        let entry = TrustEntry { config: sha256(text.as_bytes()), files: Some(before) };
        let config = parse("bcc-script.toml", text).unwrap();
        let state = || TrustState::of_entry(&entry, project.path(), text.as_bytes(), &config);
        assert!(!state().is_trusted(), "it was removed");
        fs::write(project.path().join("data.csv"), "1").unwrap();
        assert!(state().is_trusted());
    }

    #[test]
    fn an_entry_of_an_earlier_release_covers_only_a_configuration_that_allows_nothing() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().to_string_lossy().into_owned())]);
        let (plain, code) = ("[project]\n", "[project]\nallow = [\"exec\"]\n");
        let own = home.path().join("bcc-script");
        fs::create_dir(&own).unwrap();
        for text in [plain, code] {
            let entry = format!("{{\"version\": 1, \"directories\": {{\"p\": \"{}\"}}}}", sha256(text.as_bytes()));
            fs::write(own.join("trust.json"), entry).unwrap();
            let state = state(&environment, Path::new("p"), text);
            match text == plain {
                true => assert!(state.is_trusted()),
                false => assert!(matches!(state, TrustState::Changed { .. }), "{state:?}"),
            }
        }
    }
}
