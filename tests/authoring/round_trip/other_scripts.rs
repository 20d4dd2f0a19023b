//! The round trip over scripts outside this repository: those of the folder in `BCC_OTHER_SCRIPTS`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use bcc_lang::source::render::human::human;

use crate::round_trip::{ScriptFolder, is_older, round_trip};

/// All YAML files of a folder and its subfolders.
fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "asks for a folder of scripts in BCC_OTHER_SCRIPTS"]
fn other_scripts_mean_the_same_after_migration() {
    let folder = env::var_os("BCC_OTHER_SCRIPTS").expect("BCC_OTHER_SCRIPTS names no folder of scripts");
    let mut files = Vec::new();
    yaml_files(Path::new(&folder), &mut files);
    files.sort();
    assert!(!files.is_empty(), "there is no YAML file in the folder that BCC_OTHER_SCRIPTS names");
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let before = ScriptFolder::copy_of(&file);
        let found = before.diagnostics();
        let errors: Vec<_> = found.iter().filter(|found| found.is_error() && !is_older(found)).cloned().collect();
        let compare = match errors.is_empty() {
            true => round_trip(&name, &found, &before, &ScriptFolder::copy_of(&file)).to_string(),
            false => format!("not tried\n{}", human(&errors, false)),
        };
        println!("{name}: changed: {compare}");
    }
}
