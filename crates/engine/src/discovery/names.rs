//! The names of files in reports: relative to the current directory if they are below it.

use std::path::{Component, Path, PathBuf};

#[derive(Clone, Debug)]
pub struct PathNames {
    /// Absolute.
    current_directory: PathBuf,
}

impl PathNames {
    /// Names relative to `current_directory`.
    pub fn relative_to(current_directory: PathBuf) -> Self {
        Self { current_directory }
    }

    /// The name of `path`: relative to the current directory if it is below it, otherwise unchanged. Invalid UTF-8 is replaced.
    pub fn display_name(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.current_directory).unwrap_or(path);
        let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        if plain.as_os_str().is_empty() { ".".to_owned() } else { plain.to_string_lossy().into_owned() }
    }

    /// The folder of a file, by the name in reports.
    pub fn folder(&self, shown: &str) -> Option<PathBuf> {
        self.current_directory.join(shown).parent().map(Path::to_path_buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_relative_below_the_current_directory_and_as_given_elsewhere() {
        let names = PathNames::relative_to("/somewhere/lin/project".into());
        let table = [
            ("/somewhere/lin/project/scripts/a.yaml", "scripts/a.yaml"),
            ("./scripts/./a.yaml", "scripts/a.yaml"),
            ("../other/a.yaml", "../other/a.yaml"),
            ("/somewhere/lin/project", "."),
            (".", "."),
            ("/somewhere/lin/projects/a.yaml", "/somewhere/lin/projects/a.yaml"),
        ];
        for (path, expected) in table {
            assert_eq!(names.display_name(Path::new(path)), expected);
        }
    }
}
