//! Finds the template files: the scheme's folder before the default one, and after each the embedded files of the binary
//! (docs/templates.md). A session pins the result of [`collect`].

use crate::message::message::Message;
use crate::message::msg;
use serde::{Deserialize, Serialize};

use crate::source::near::did_you_mean;
use crate::source::yaml::YamlNode;
use crate::template::builtin::{BUILTINS, schemes};
use crate::template::error::TemplateError;
use crate::template::language::PromptLanguage;

/// The maximum length of a template, in bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The maximum number of templates in a session.
pub const MAX_FILES: usize = 500;

/// The maximum length of the name of a scheme, in bytes.
pub const MAX_SCHEME_BYTES: usize = 100;

/// The name of the scheme with only the default templates. It overrides another scheme, for example that of the project.
pub const DEFAULT_SCHEME: &str = "default";

/// The built-in scheme for scripts that are not written in Chinese.
pub const ENGLISH_SCHEME: &str = "english";

/// The built-in scheme for scripts that are written in Chinese: the default templates of the binary.
pub const CHINESE_SCHEME: &str = "chinese";

/// The layer of a template, in lookup order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TemplateLayer {
    /// `_system/config/custom/<scheme>/` of the project.
    Scheme,
    /// The embedded files of that scheme.
    BuiltinScheme,
    /// `_system/config/default/` of the project.
    Default,
    /// The embedded default files.
    Builtin,
}

impl TemplateLayer {
    /// The layer of a [`TemplateFile::place`]; `None` if the place is invalid.
    pub fn of(place: &str) -> Option<Self> {
        Some(match place {
            "default" => Self::Default,
            "builtin/default" => Self::Builtin,
            _ if place.strip_prefix("builtin/custom/").is_some_and(is_scheme_name) => Self::BuiltinScheme,
            _ if place.strip_prefix("custom/").is_some_and(is_scheme_name) => Self::Scheme,
            _ => return None,
        })
    }

    pub const fn is_of_scheme(self) -> bool {
        matches!(self, Self::Scheme | Self::BuiltinScheme)
    }
}

/// A folder of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateFolder<'a> {
    /// `_system/config/custom/<scheme>/`
    Scheme(&'a str),
    /// `_system/config/default/`
    Default,
}

/// Reads the project's template folders; implemented by the engine.
pub trait TemplateSource: Send + Sync {
    /// The text of a file such as `ai_ask_v1.md`; `None` if it does not exist.
    /// Errors: A message if it exists and cannot be read.
    fn read(&self, place: TemplateFolder<'_>, file: &str) -> Result<Option<String>, Message>;

    /// The names of the files in a folder; empty if the folder does not exist.
    /// Errors: A message if the folder exists and cannot be listed.
    fn list(&self, place: TemplateFolder<'_>) -> Result<Vec<String>, Message>;

    /// The names of the project's schemes, for suggestions.
    fn schemes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A template file that is pinned to a session.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct TemplateFile {
    /// `custom/english`, `default`, `builtin/custom/english` or `builtin/default`.
    pub place: String,
    /// `ai_ask_v1.md`
    pub name: String,
    /// Its content, including front matter.
    pub text: String,
}

/// Whether a scheme of this name can have its own layers.
pub fn is_own_scheme(name: &str) -> bool {
    is_scheme_name(name) && name != DEFAULT_SCHEME
}

/// The scheme if it has its own layers; `None` for no scheme or the default one.
pub fn own_scheme(scheme: Option<&str>) -> Option<&str> {
    scheme.filter(|scheme| *scheme != DEFAULT_SCHEME)
}

/// The scheme of a session for which none is named: the default templates of the project if it has any, else the built-in scheme of the
/// language in which the script is written. `None` for the default templates, which are Chinese in the binary.
pub fn scheme_of_language(source: &dyn TemplateSource, script: Option<&YamlNode>) -> Option<&'static str> {
    // A folder that cannot be listed is reported when the templates are collected.
    let has_templates = |names: Vec<String>| names.iter().any(|name| is_template_name(name));
    if source.list(TemplateFolder::Default).map_or(true, has_templates) {
        return None;
    }
    match PromptLanguage::of_script(script?)? {
        PromptLanguage::En => Some(ENGLISH_SCHEME),
        PromptLanguage::Zh => None,
    }
}

/// The places of templates, in lookup order.
pub fn order(scheme: Option<&str>) -> Vec<String> {
    let mut places = Vec::with_capacity(4);
    if let Some(scheme) = own_scheme(scheme) {
        places.push(format!("custom/{scheme}"));
        if schemes().any(|known| known == scheme) {
            places.push(format!("builtin/custom/{scheme}"));
        }
    }
    places.push("default".to_owned());
    places.push("builtin/default".to_owned());
    places
}

/// The display name of a file.
pub fn display_name(place: &str, name: &str) -> String {
    match place.strip_prefix("builtin/") {
        Some(place) => format!("builtin:_system/config/{place}/{name}"),
        None => format!("_system/config/{place}/{name}"),
    }
}

/// Whether `name` consists of letters, digits, `_` and `-` and is not too long.
pub fn is_scheme_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_SCHEME_BYTES
        && name.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-'))
}

/// Whether `name` is a valid file name of a template: `….md`, without a folder, not hidden.
pub fn is_template_name(name: &str) -> bool {
    name.len() > 3
        && std::path::Path::new(name).extension().is_some_and(|extension| extension == "md")
        && !name.starts_with('.')
        && !name.contains(['/', '\\', ':', '\0'])
}

/// Reads all files that a session of this scheme can use, in lookup order: those of the scheme and the default ones, each
/// followed by the embedded ones. Files whose name does not end in `.md` are ignored.
/// Errors: An invalid name of a scheme; a scheme that exists neither in the project nor in the binary; a file or folder that
/// cannot be read; a file longer than [`MAX_FILE_BYTES`]; more than [`MAX_FILES`] files.
pub fn collect(source: &dyn TemplateSource, scheme: Option<&str>) -> Result<Vec<TemplateFile>, TemplateError> {
    let scheme = own_scheme(scheme);
    if let Some(scheme) = scheme.filter(|scheme| !is_scheme_name(scheme)) {
        return Err(TemplateError::new(msg!("`{}` is not a valid name for a template scheme", scheme.escape_debug()))
            .with_help("a scheme name consists of letters, digits, `_` and `-`, without a folder"));
    }
    let mut files = Vec::new();
    for place in order(scheme) {
        match place.strip_prefix("builtin/") {
            Some(inside) => files.extend(BUILTINS.iter().filter(|file| file.place == inside).map(|file| {
                TemplateFile { place: place.clone(), name: file.name.to_owned(), text: file.text.to_owned() }
            })),
            None => {
                let folder =
                    scheme.filter(|_| place != "default").map_or(TemplateFolder::Default, TemplateFolder::Scheme);
                read_folder(source, folder, &place, &mut files)?;
            }
        }
        if files.len() > MAX_FILES {
            return Err(TemplateError::new(msg!("a session can have at most {MAX_FILES} templates")));
        }
    }
    match scheme {
        Some(scheme)
            if !files.iter().any(|file| TemplateLayer::of(&file.place).is_some_and(TemplateLayer::is_of_scheme)) =>
        {
            Err(no_scheme(source, scheme))
        }
        _ => Ok(files),
    }
}

fn read_folder(
    source: &dyn TemplateSource,
    folder: TemplateFolder<'_>,
    place: &str,
    files: &mut Vec<TemplateFile>,
) -> Result<(), TemplateError> {
    let unreadable = |file: String, reason: Message| TemplateError {
        file: Some(file),
        ..TemplateError::new(msg!("this file cannot be read: {reason}"))
    };
    let mut names = source
        .list(folder)
        .map_err(|reason| unreadable(display_name(place, "").trim_end_matches('/').to_owned(), reason))?;
    names.retain(|name| is_template_name(name));
    names.sort_unstable();
    names.dedup();
    if names.len() > MAX_FILES {
        return Err(TemplateError::new(msg!("a session can have at most {MAX_FILES} templates")));
    }
    for name in names {
        let text = source.read(folder, &name).map_err(|reason| unreadable(display_name(place, &name), reason))?;
        // The file was deleted after it was listed.
        let Some(text) = text else { continue };
        if text.len() > MAX_FILE_BYTES {
            let message = msg!("a template can be at most {MAX_FILE_BYTES} bytes long");
            return Err(TemplateError { file: Some(display_name(place, &name)), ..TemplateError::new(message) });
        }
        files.push(TemplateFile { place: place.to_owned(), name, text });
    }
    Ok(())
}

/// The error for an unknown scheme, with the places that were tried and a suggestion.
pub fn no_scheme(source: &dyn TemplateSource, scheme: &str) -> TemplateError {
    let mut known = source.schemes();
    known.extend(schemes().chain([DEFAULT_SCHEME]).map(str::to_owned));
    let tried = msg!(
        "tried _system/config/custom/{scheme}/ of the project and the built-in schemes ({})",
        Message::values(schemes())
    );
    let help = match did_you_mean(scheme, known.iter().map(String::as_str)) {
        Some(near) => msg!("{near} ({tried})"),
        None => tried,
    };
    TemplateError::new(msg!("there is no template scheme `{scheme}`")).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn without_a_named_scheme_the_language_of_the_script_decides_unless_the_project_has_default_templates() {
        let parsed = |text: &str| {
            let file = Arc::new(crate::source::text::SourceFile::new("s.yaml", text));
            crate::source::compose::parse(&file).root
        };
        let english = parsed("session: { content: Who are you? }");
        let chinese = parsed("session: { content: 您是谁？ }");
        let none = Folders::default();
        assert_eq!(scheme_of_language(&none, english.as_deref()), Some("english"));
        assert_eq!(scheme_of_language(&none, chinese.as_deref()), None);
        assert_eq!(scheme_of_language(&none, None), None);
        let own = Folders::default().with("default", "ai_ask_v1.md", "x");
        assert_eq!(scheme_of_language(&own, english.as_deref()), None);
    }

    #[derive(Default)]
    struct Folders(BTreeMap<String, BTreeMap<String, Result<String, Message>>>);

    impl Folders {
        fn with(mut self, place: &str, name: &str, text: &str) -> Self {
            self.0.entry(place.into()).or_default().insert(name.into(), Ok(text.into()));
            self
        }

        fn folder(&self, place: TemplateFolder<'_>) -> Option<&BTreeMap<String, Result<String, Message>>> {
            self.0.get(&match place {
                TemplateFolder::Scheme(scheme) => format!("custom/{scheme}"),
                TemplateFolder::Default => "default".to_owned(),
            })
        }
    }

    impl TemplateSource for Folders {
        fn read(&self, place: TemplateFolder<'_>, file: &str) -> Result<Option<String>, Message> {
            self.folder(place).and_then(|folder| folder.get(file)).cloned().transpose()
        }

        fn list(&self, place: TemplateFolder<'_>) -> Result<Vec<String>, Message> {
            Ok(self.folder(place).map(|folder| folder.keys().cloned().collect()).unwrap_or_default())
        }

        fn schemes(&self) -> Vec<String> {
            self.0.keys().filter_map(|place| place.strip_prefix("custom/")).map(str::to_owned).collect()
        }
    }

    fn places(files: &[TemplateFile]) -> Vec<String> {
        let mut places: Vec<String> = files.iter().map(|file| file.place.clone()).collect();
        places.dedup();
        places
    }

    #[test]
    fn files_are_in_lookup_order() {
        let source = Folders::default()
            .with("custom/cbt", "ai_ask_v1.md", "a")
            .with("default", "ai_ask_v1.md", "b")
            .with("custom/english", "part.md", "c")
            .with("custom/other", "x.md", "never");
        assert_eq!(places(&collect(&source, Some("cbt")).unwrap()), ["custom/cbt", "default", "builtin/default"]);
        assert_eq!(
            places(&collect(&source, Some("english")).unwrap()),
            ["custom/english", "builtin/custom/english", "default", "builtin/default"]
        );
        assert_eq!(places(&collect(&source, None).unwrap()), ["default", "builtin/default"]);
        assert_eq!(
            places(&collect(&Folders::default(), Some("english")).unwrap()),
            ["builtin/custom/english", "builtin/default"]
        );
        let layers = order(Some("english")).iter().map(|place| TemplateLayer::of(place).unwrap()).collect::<Vec<_>>();
        assert!(layers.is_sorted());
    }

    #[test]
    fn the_default_scheme_has_a_name_but_no_custom_folder() {
        let source = Folders::default().with("custom/default", "a.md", "never").with("default", "a.md", "b");
        assert_eq!(collect(&source, Some(DEFAULT_SCHEME)), collect(&source, None));
        assert_eq!(order(Some(DEFAULT_SCHEME)), ["default", "builtin/default"]);
        assert!(
            collect(&source, Some("defualt"))
                .unwrap_err()
                .help
                .unwrap()
                .to_string()
                .contains("did you mean `default`?")
        );
    }

    #[test]
    fn the_embedded_chinese_templates_can_override_those_of_the_project() {
        let source = Folders::default().with("default", "ai_ask_v1.md", "mine");
        let files = collect(&source, Some("chinese")).unwrap();
        assert_eq!(places(&files), ["builtin/custom/chinese", "default", "builtin/default"]);
        let text = |place: &str| files.iter().find(|file| file.place == place).map(|file| file.text.as_str());
        assert_eq!(text("builtin/custom/chinese"), text("builtin/default"));
    }

    #[test]
    fn files_that_are_not_templates_are_ignored() {
        let source = Folders::default()
            .with("default", ".hidden.md", "x")
            .with("default", "notes.txt", "x")
            .with("default", "ai_ask_v1.md~", "x")
            .with("default", "提问_v2.md", "x");
        let files = collect(&source, None).unwrap();
        let own: Vec<&str> =
            files.iter().filter(|file| file.place == "default").map(|file| file.name.as_str()).collect();
        assert_eq!(own, ["提问_v2.md"]);
    }

    #[test]
    fn an_unknown_scheme_is_an_error_with_a_suggestion_and_the_places() {
        let source = Folders::default().with("custom/cbt_anxiety", "a.md", "x");
        let error = collect(&source, Some("cbt_anxeity")).unwrap_err();
        assert_eq!(error.message, "there is no template scheme `cbt_anxeity`");
        let help = error.help.unwrap();
        assert!(
            help.to_string().contains("did you mean `cbt_anxiety`?")
                && help.to_string().contains("_system/config/custom/cbt_anxeity/"),
            "{help}"
        );
        assert!(collect(&source, Some("englich")).unwrap_err().help.unwrap().to_string().contains("`english`"));
    }

    #[test]
    fn scheme_names_that_are_paths_are_rejected() {
        for scheme in ["", "..", "../x", "a/b", "a\\b", "/abs", "a b", "a.b", "c:", "a\0", &"x".repeat(101)] {
            let error = collect(&Folders::default(), Some(scheme)).unwrap_err();
            assert!(
                error.message.to_string().contains("is not a valid name for a template scheme"),
                "{scheme}: {error}"
            );
        }
        assert!(is_scheme_name("焦虑-2_b"));
    }

    #[test]
    fn unreadable_long_and_too_many_files_are_errors() {
        let mut source = Folders::default();
        source.0.entry("default".into()).or_default().insert("a.md".into(), Err(Message::word("not UTF-8")));
        let error = collect(&source, None).unwrap_err();
        assert_eq!(error.file.as_deref(), Some("_system/config/default/a.md"));
        assert!(error.message.to_string().contains("not UTF-8"));
        let long = Folders::default().with("default", "a.md", &"x".repeat(MAX_FILE_BYTES + 1));
        assert!(collect(&long, None).unwrap_err().message.to_string().contains("at most"));
        let many =
            (0..=MAX_FILES).fold(Folders::default(), |folders, n| folders.with("default", &format!("a{n}.md"), "x"));
        assert!(collect(&many, None).unwrap_err().message.to_string().contains("at most 500"));
    }
}
