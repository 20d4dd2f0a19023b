//! Creates a scheme: copies templates into `_system/config/custom/<scheme>/` for editing. Existing files are never overwritten.

use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::templates::catalog::{CatalogEntry, TemplateCatalog};
use crate::templates::find::find;
use crate::templates::includes::IncludeGraph;
use crate::templates::scheme::check_new_name;
use bcc_check::templates::unused::name_and_version;
use bcc_engine::error::EngineError;
use bcc_engine::files::TemplateFolders;
use bcc_engine::files::create::create_all;
use bcc_engine::portable::differ_only_in_case;
use bcc_engine::project::absolute;
use bcc_lang::template::layers::{DEFAULT_SCHEME, TemplateFolder, is_template_name};

#[derive(Clone, Copy, Debug)]
pub struct NewScheme<'r> {
    pub project: &'r Path,
    pub scheme: &'r str,
    /// The scheme whose templates are copied; `None` for the default one.
    pub from: Option<&'r str>,
    /// The templates to copy, by the names that users enter; empty for all.
    pub names: &'r [String],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeScheme {
    /// The absolute path of the scheme's folder.
    pub folder: PathBuf,
    /// The displayed path in the project: `_system/config/custom/gentle`.
    pub shown: String,
    pub written: Vec<String>,
    /// The names of existing files, which were not changed.
    pub existing: Vec<String>,
}

/// Copies templates into the folder of a scheme: all templates of the source, or the named ones with their includes
/// from the source's own folder. A new folder is created atomically with all of its files; in an existing folder,
/// existing files are kept. If something fails, nothing is left behind.
/// Errors: `Usage` if the name is not allowed, if the source or a template does not exist or cannot be read, or if a
/// link leads out of the project; `Failed` if the files cannot be written.
pub fn new_scheme(request: &NewScheme<'_>) -> Result<MadeScheme, EngineError> {
    let NewScheme { project, scheme, from, names } = *request;
    check_new_name(scheme)?;
    let catalog = TemplateCatalog::of(project);
    if let Some(known) = catalog.schemes().into_iter().find(|known| differ_only_in_case(known, scheme)) {
        let message = msg!("the scheme `{known}` already exists, and its name differs from `{scheme}` only in case");
        return Err(EngineError::usage(message).with_help(
            "some systems cannot tell the two folders apart: choose another name, or use the same spelling",
        ));
    }
    let from = from.unwrap_or(DEFAULT_SCHEME);
    catalog.check_scheme(from)?;
    let mut files = Vec::new();
    for file in selected_files(&catalog, from, names)? {
        files.push((file.name.clone(), file.readable()?.as_bytes().to_vec()));
    }
    let folder = TemplateFolders::of(&absolute(project)).folder(TemplateFolder::Scheme(scheme));
    let shown = format!("_system/config/custom/{scheme}");
    check_inside(&absolute(project), &folder, &shown)?;
    let created = create_all(&folder, &files)
        .map_err(|error| EngineError::failed(msg!("{shown} cannot be written: {error}; nothing was changed")))?;
    Ok(MadeScheme { folder, shown, written: created.written, existing: created.existing })
}

fn selected_files<'s>(
    catalog: &'s TemplateCatalog,
    from: &str,
    names: &[String],
) -> Result<Vec<&'s CatalogEntry>, EngineError> {
    let served = catalog.served(from);
    let includes = IncludeGraph::of(catalog, from)?;
    let mut next: Vec<&str> = Vec::new();
    for name in names {
        next.push(find(catalog, from, name, None)?.name);
    }
    if names.is_empty() {
        next = served.keys().copied().filter(|name| name_and_version(name).is_some()).collect();
    }
    let requested: BTreeSet<&str> = next.iter().copied().collect();
    let mut selected: BTreeSet<&str> = BTreeSet::new();
    while let Some(name) = next.pop() {
        let Some((name, [file, ..])) = served.get_key_value(name).map(|(name, files)| (*name, files.as_slice())) else {
            continue;
        };
        // Files in the shared layers are also found from the new scheme.
        let is_shared = matches!(file.place.as_str(), "default" | "builtin/default");
        if (!names.is_empty() && is_shared && !requested.contains(name)) || !selected.insert(name) {
            continue;
        }
        // A name that skips the scheme is not one of these, and is also found from the new scheme.
        let parts = includes.includes.get(name).into_iter().flatten();
        next.extend(parts.filter_map(|part| served.get_key_value(part.as_str()).map(|(part, _)| *part)));
    }
    // The targets of computed includes are known only at run time.
    let all = served.iter().filter(|(name, _)| selected.contains(*name) || includes.incomplete && names.is_empty());
    Ok(all.filter_map(|(_, files)| files.first().copied()).filter(|file| is_template_name(&file.name)).collect())
}

/// Checks that nothing is written outside the project through links.
fn check_inside(project: &Path, folder: &Path, shown: &str) -> Result<(), EngineError> {
    let existing = folder.ancestors().find(|one| one.symlink_metadata().is_ok()).unwrap_or(project);
    if existing.exists() && !existing.is_dir() {
        let name = existing.strip_prefix(project).unwrap_or(existing).display();
        return Err(EngineError::usage(msg!("{shown} cannot be created: `{name}` is a file, but a folder is needed")));
    }
    let target = std::fs::canonicalize(existing);
    if target.is_ok_and(|real| real.starts_with(project)) {
        return Ok(());
    }
    Err(EngineError::usage(msg!("{shown} would be outside the project: a link points there")).with_help(
        "nothing was written; create the folder in the project, or specify the other project with `--project`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn put(root: &Path, path: &str, text: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn made(root: &Path, scheme: &str, from: Option<&str>, names: &[&str]) -> Result<MadeScheme, EngineError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        new_scheme(&NewScheme { project: root, scheme, from, names: &names })
    }

    #[test]
    fn an_empty_directory_gets_a_scheme_with_all_built_in_templates() {
        let root = tempfile::tempdir().unwrap();
        let first = made(root.path(), "gentle", Some("english"), &[]).unwrap();
        assert_eq!(first.written.len(), 16);
        assert_eq!(first.shown, "_system/config/custom/gentle");
        assert_eq!(entries(&root.path().join("_system/config/custom")), ["gentle"]);
        let text = fs::read_to_string(first.folder.join("ai_ask_v1.md")).unwrap();
        assert_eq!(text, include_str!("../../../../_system/config/custom/english/ai_ask_v1.md"));
        let chinese = made(root.path(), "温和", None, &["ai_say"]).unwrap();
        assert_eq!(chinese.written, ["ai_say_v1.md"]);
        let text = fs::read_to_string(chinese.folder.join("ai_say_v1.md")).unwrap();
        assert_eq!(text, include_str!("../../../../_system/config/default/ai_say_v1.md"));
    }

    #[test]
    fn existing_files_are_kept_and_reported() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "_system/config/custom/gentle/ai_ask_v1.md", "mine");
        let second = made(root.path(), "gentle", None, &["ai_ask", "ai_say"]).unwrap();
        assert_eq!(
            (second.written.as_slice(), second.existing.as_slice()),
            (&["ai_say_v1.md".to_owned()][..], &["ai_ask_v1.md".to_owned()][..])
        );
        assert_eq!(fs::read_to_string(second.folder.join("ai_ask_v1.md")).unwrap(), "mine");
        let third = made(root.path(), "gentle", None, &["ai_ask", "ai_say"]).unwrap();
        assert!(third.written.is_empty() && third.existing.len() == 2);
    }

    #[test]
    fn includes_are_copied_if_the_new_scheme_would_not_find_them() {
        let root = tempfile::tempdir().unwrap();
        let gentle = "_system/config/custom/gentle";
        put(root.path(), &format!("{gentle}/ai_ask_v1.md"), "{% include 'own.md' %}{% include 'shared.md' %}");
        put(root.path(), &format!("{gentle}/ai_ask_v3.md"), "three");
        put(root.path(), &format!("{gentle}/own.md"), "{% include 'deep.md' %}");
        put(root.path(), &format!("{gentle}/deep.md"), "deep");
        put(root.path(), &format!("{gentle}/README.md"), "for people");
        put(root.path(), "_system/config/default/shared.md", "shared");
        let one = made(root.path(), "one", Some("gentle"), &["ai_ask"]).unwrap();
        assert_eq!(one.written, ["ai_ask_v1.md", "deep.md", "own.md"]);
        let all = made(root.path(), "all", Some("gentle"), &[]).unwrap();
        assert!(
            ["ai_ask_v3.md", "own.md", "shared.md", "persona_v1.md"]
                .iter()
                .all(|name| all.written.iter().any(|w| w == name))
        );
        assert!(!all.written.contains(&"README.md".to_owned()));
    }

    #[test]
    fn nothing_is_written_after_an_error() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "_system/config/custom/torn/ai_ask_v1.md", [0xff, 0xfe]);
        put(root.path(), "_system/config/custom/Gentle/ai_ask_v1.md", "x");
        put(root.path(), "_system/config/custom/file", "");
        let table = [
            ("file", None, vec![], "`_system/config/custom/file` is a file"),
            ("../x", None, vec![], "is a path"),
            ("x", Some("english2"), vec![], "there is no template scheme `english2`"),
            ("x", Some("../x"), vec![], "is not a valid name for a template scheme"),
            ("x", None, vec!["ai_aks"], "there is no template `ai_aks`"),
            ("x", Some("torn"), vec![], "is not UTF-8"),
            ("gentle", None, vec![], "only in case"),
        ];
        for (scheme, from, names, why) in table {
            let error = made(root.path(), scheme, from, &names).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(entries(&root.path().join("_system/config/custom")), ["Gentle", "file", "torn"]);
        }
    }

    #[test]
    fn a_new_scheme_is_not_created_through_a_link_out_of_the_project() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(root.path().join("_system/config")).unwrap();
        symlink(other.path(), root.path().join("_system/config/custom")).unwrap();
        let error = made(root.path(), "gentle", None, &[]).unwrap_err();
        assert!(error.to_string().contains("outside the project"), "{error}");
        assert!(entries(other.path()).is_empty());
        fs::remove_file(root.path().join("_system/config/custom")).unwrap();
        fs::create_dir(root.path().join("inside")).unwrap();
        symlink("../../inside", root.path().join("_system/config/custom")).unwrap();
        made(root.path(), "gentle", None, &["ai_ask"]).unwrap();
        assert_eq!(entries(&root.path().join("inside/gentle")), ["ai_ask_v1.md"]);
    }
}
