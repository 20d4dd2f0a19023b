//! What files are called in reports: relative to the current directory where they lie below it.

use std::path::{Component, Path, PathBuf};

#[derive(Clone, Debug)]
pub struct PathNames {
    /// The current directory, absolute.
    here: PathBuf,
}

impl PathNames {
    /// Names as they are seen from `here`.
    pub fn seen_from(here: PathBuf) -> Self {
        Self { here }
    }

    /// The name of `path`: without the current directory in front, else as given. What is not UTF-8 is replaced.
    pub fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.here).unwrap_or(path);
        let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        if plain.as_os_str().is_empty() { ".".to_owned() } else { plain.to_string_lossy().into_owned() }
    }

    /// The folder of a file that is shown by this name.
    pub fn folder(&self, shown: &str) -> Option<PathBuf> {
        self.here.join(shown).parent().map(Path::to_path_buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_relative_below_the_current_directory_and_as_given_elsewhere() {
        let names = PathNames::seen_from("/somewhere/lin/project".into());
        let table = [
            ("/somewhere/lin/project/scripts/a.yaml", "scripts/a.yaml"),
            ("./scripts/./a.yaml", "scripts/a.yaml"),
            ("../other/a.yaml", "../other/a.yaml"),
            ("/somewhere/lin/project", "."),
            (".", "."),
            ("/somewhere/lin/projects/a.yaml", "/somewhere/lin/projects/a.yaml"),
        ];
        for (path, expected) in table {
            assert_eq!(names.shown(Path::new(path)), expected);
        }
    }
}
