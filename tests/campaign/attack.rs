//! An attack, and the case in which it is carried out.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fastrand::Rng;
use tempfile::TempDir;

use crate::process::Home;

pub struct Attack {
    /// The family and the attack: `kills/talk`.
    pub name: &'static str,
    /// Carries it out. Returns the outcome, one of few texts that are counted, or what is wrong. A panic is also a failure.
    pub run: fn(&mut Case) -> Result<String, String>,
}

/// The directory of this campaign, which holds those of all cases.
pub fn campaign_directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| TempDir::with_prefix("bcc-campaign-").unwrap().keep())
}

/// One case: everything that it chooses depends only on the seed of the campaign and its number.
pub struct Case {
    pub number: u64,
    pub rng: Rng,
    /// Its own directory, which remains if the case fails.
    pub directory: PathBuf,
}

impl Case {
    pub fn new(seed: u64, number: u64) -> Self {
        let rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
        let directory = campaign_directory().join(number.to_string());
        std::fs::create_dir(&directory).unwrap();
        Self { number, rng, directory }
    }

    pub fn home(&self) -> Home {
        Home::kept_in(&self.directory)
    }

    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.rng.usize(..all.len())]
    }

    /// Removes its directory, also if an attack took away permissions.
    pub fn remove(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            eprintln!("{} cannot be removed: {error}", self.directory.display());
        }
    }
}

/// Fails with this description unless the condition holds.
pub fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}
