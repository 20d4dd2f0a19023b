//! Paths in texts for clients: where the project is on the machine is not for them.

use std::path::Path;

/// The text with paths in the project as they are in the project, and the project itself as `.`.
pub(crate) fn in_project(text: &str, directory: &Path) -> String {
    let directory = directory.to_string_lossy();
    // The root of the machine is in every path.
    if directory.len() <= 1 {
        return text.to_owned();
    }
    let is_in_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/');
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(directory.as_ref()) {
        shown.push_str(before);
        let starts = !shown.ends_with(is_in_name);
        let ends = |after: &str| {
            !after.starts_with(is_in_name)
                && !after.strip_prefix('.').is_some_and(|after| after.starts_with(is_in_name))
        };
        match after.strip_prefix('/') {
            Some(inside) if starts && inside.starts_with(|letter: char| !letter.is_whitespace() && letter != '/') => {
                rest = inside
            }
            _ if starts && ends(after) => {
                shown.push('.');
                rest = after;
            }
            _ => {
                shown.push_str(&directory);
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_in_the_project_are_shortened() {
        let table = [
            ("/srv/p/scripts/a.yaml:3: wrong", "scripts/a.yaml:3: wrong"),
            ("run `bcc-script trust /srv/p`, please", "run `bcc-script trust .`, please"),
            ("/srv/p", "."),
            ("in /srv/p.", "in .."),
            ("/srv/p2/a.yaml and /srv/p.old", "/srv/p2/a.yaml and /srv/p.old"),
            ("/mnt/srv/p/a.yaml", "/mnt/srv/p/a.yaml"),
            ("`/srv/p/a` and `/srv/p/b`", "`a` and `b`"),
            ("nothing", "nothing"),
        ];
        for (text, shown) in table {
            assert_eq!(in_project(text, Path::new("/srv/p")), shown, "{text}");
        }
        assert_eq!(in_project("/a/b", Path::new("/")), "/a/b");
    }
}
