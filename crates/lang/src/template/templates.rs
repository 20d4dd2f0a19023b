//! The prompt templates of a session, by name and version. Each is compiled on first use (docs/templates.md).

use crate::message::ToMessage;
use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use crate::template::error::error_with_message;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use minijinja::{Environment, ErrorKind, UndefinedBehavior};

use crate::expr::failure::ExpressionDialect;
use crate::source::near::did_you_mean;
use crate::source::near::near_miss;
use crate::template::environment::{environment, write_with_marks};
use crate::template::error::{MistakeKind, TemplateError};
use crate::template::language::PromptLanguage;
use crate::template::layers::{
    MAX_FILE_BYTES, MAX_FILES, TemplateFile, TemplateLayer, display_name, is_template_name, order,
};
use crate::template::loaded::{DEFAULT_PREFIX, LoadedTemplate, is_outside, outside_message};
use crate::template::mentions::{TemplateLibrary, mentioned};
use crate::template::missing::Marks;
use crate::template::operations::Operations;
use crate::template::roles::{MIN_NONCE_BYTES, Sentinels};
use crate::template::template::Template;
use crate::template::uses::{Target, TargetKind, Uses};

/// Prefix, for the loader, of a name that no pinned file has. File names cannot contain it.
const UNKNOWN: char = '\0';

/// The pinned templates of a session.
#[derive(Debug)]
pub struct Templates {
    pub(crate) environment: Environment<'static>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) sentinels: Sentinels,
    pub(crate) loaded: Arc<[LoadedTemplate]>,
    /// The indexes by the names that templates use: `ai_ask_v1.md`, `default:ai_ask_v1.md`.
    by_name: HashMap<String, usize>,
    places: Vec<String>,
    /// Records the missing names of renderings that are displayed and not sent.
    pub(crate) marks: Option<Arc<Marks>>,
}

impl Templates {
    /// Creates templates from pinned files. `nonce` becomes part of the role markers: at least `MIN_NONCE_BYTES` ASCII letters and
    /// digits, unguessable and new for each process.
    /// Errors: An invalid nonce, a file with an invalid place or name, more or longer files than
    /// [`collect`](crate::template::layers::collect) returns. A mistake *inside* a file is an error of [`get`](Self::get)
    /// for the templates that need it (an invalid README.md in the folder does no harm); [`problems`](Self::problems)
    /// lists all.
    pub fn new(files: &[TemplateFile], nonce: &str) -> Result<Self, TemplateError> {
        let sentinels = Sentinels::new(nonce).ok_or_else(|| {
            TemplateError::new(msg!("the mark of role markers must have at least {MIN_NONCE_BYTES} letters and digits"))
        })?;
        let mut by_name = HashMap::new();
        let mut loaded = Vec::with_capacity(files.len());
        for (number, (layer, file)) in in_order(files)?.into_iter().enumerate() {
            by_name.entry(file.name.clone()).or_insert(number);
            if !layer.is_of_scheme() {
                by_name.entry(format!("{DEFAULT_PREFIX}{}", file.name)).or_insert(number);
            }
            loaded.push(LoadedTemplate::of(file));
        }
        let scheme = files
            .iter()
            .find_map(|file| file.place.strip_prefix("custom/").or_else(|| file.place.strip_prefix("builtin/custom/")));
        let mut environment = environment(UndefinedBehavior::Strict);
        let loaded: Arc<[LoadedTemplate]> = loaded.into();
        let operations = connect(&mut environment, &loaded, &by_name, &sentinels);
        Ok(Self { environment, operations, sentinels, loaded, by_name, places: order(scheme), marks: None })
    }

    /// Sets up the templates for prompts that are displayed instead of sent: an unknown name is not an error but is marked in the text.
    /// Unknown names and variables without a value are recorded in `marks`. No name is required by [`Template::mentioned`].
    #[must_use]
    pub fn with_marks(mut self, marks: Arc<Marks>) -> Self {
        self.marks = Some(marks);
        self.environment.set_formatter(write_with_marks);
        self
    }

    /// The names that rendering a template may look up, with whether each is required.
    pub(crate) fn mentioned<'t>(&'t self, loaded: &'t LoadedTemplate) -> &'t BTreeMap<String, bool> {
        loaded.mentioned.get_or_init(|| {
            let number = self.loaded.iter().position(|other| other.key == loaded.key);
            number.map(|number| mentioned(self, number)).unwrap_or_default()
        })
    }

    /// The first problem of a template or of one that it refers to.
    fn problem_of(&self, number: usize) -> Option<&TemplateError> {
        let loaded = self.loaded.get(number)?;
        loaded.problem.get_or_init(|| self.problem(number, &mut Vec::new())).as_ref()
    }

    fn problem(&self, number: usize, path: &mut Vec<usize>) -> Option<TemplateError> {
        let loaded = self.loaded.get(number)?;
        if let Some(mistake) = loaded.mistakes().first() {
            return Some(mistake.clone());
        }
        if path.contains(&number) {
            return None;
        }
        path.push(number);
        let found = loaded.uses().targets.iter().find_map(|target| {
            self.target_error(loaded, target, path).or_else(|| {
                let next = self.by_name.get(target.name.as_deref()?)?;
                self.problem(*next, path)
            })
        });
        path.pop();
        found
    }

    /// The error of a reference to `target`, if any. `path` is the chain of referring templates; the last one contains the reference.
    fn target_error(&self, loaded: &LoadedTemplate, target: &Target, path: &[usize]) -> Option<TemplateError> {
        let name = target.name.as_deref().filter(|name| !is_outside(name))?;
        let range = || loaded.range(&target.name_range);
        match self.by_name.get(name) {
            Some(next) if target.kind == TargetKind::Extends && path.contains(next) => {
                let message = msg!("`{name}` extends itself");
                let help = match name.strip_prefix(DEFAULT_PREFIX) {
                    None => msg!("to extend the default template, write `{DEFAULT_PREFIX}{name}`"),
                    Some(_) => msg!("this is the default template: only a template of a scheme can extend it"),
                };
                Some(loaded.mistake(MistakeKind::Cycle, range(), message, Some(help)))
            }
            None if target.kind != TargetKind::IncludeIfPresent => {
                let (prefix, file) =
                    name.strip_prefix(DEFAULT_PREFIX).map_or(("", name), |file| (DEFAULT_PREFIX, file));
                let mut known: Vec<&str> = self.by_name.keys().filter_map(|name| name.strip_prefix(prefix)).collect();
                known.sort_unstable();
                let near = near_miss(file, known).map(|near| format!("{prefix}{near}"));
                let help = near.as_ref().map_or_else(|| self.tried(file), |near| msg!("did you mean `{near}`?"));
                let message = msg!("there is no template `{name}`");
                let mistake = loaded.mistake(MistakeKind::Missing, range(), message, Some(help));
                Some(mistake.with_instead(near.as_deref()))
            }
            _ => None,
        }
    }

    /// All mistakes in the file with this number, without those of the templates that it refers to.
    pub fn mistakes(&self, number: usize) -> Vec<TemplateError> {
        let Some(loaded) = self.loaded.get(number) else { return Vec::new() };
        let mut found = loaded.mistakes().to_vec();
        for target in &loaded.uses().targets {
            match self.target_error(loaded, target, &[number]) {
                Some(error) => found.push(error),
                None => found.extend(self.cycle_error(number, target)),
            }
        }
        found
    }

    /// The error if `target` always loads this template again.
    fn cycle_error(&self, number: usize, target: &Target) -> Option<TemplateError> {
        let loaded = self.loaded.get(number)?;
        let named = |target: &Target| {
            let name = target.name.as_deref().filter(|_| target.always)?;
            self.by_name.get(name).copied()
        };
        let mut visited = BTreeSet::new();
        let mut next: Vec<usize> = named(target).into_iter().collect();
        while let Some(current) = next.pop() {
            if current == number {
                let name = target.name.as_deref().unwrap_or_default();
                let message = if named(target) == Some(number) {
                    msg!("`{name}` is this template itself, so rendering would never end")
                } else {
                    msg!("`{name}` loads this template again, so rendering would never end")
                };
                let help = Message::word("remove one of the two, or put it in an `{% if … %}` that ends the recursion");
                return Some(loaded.mistake(MistakeKind::Cycle, loaded.range(&target.name_range), message, Some(help)));
            }
            if visited.insert(current) {
                next.extend(
                    self.loaded.get(current).into_iter().flat_map(|loaded| &loaded.uses().targets).filter_map(named),
                );
            }
        }
        None
    }

    /// The files, in lookup order; the number of a template is its index.
    pub fn files(&self) -> &[LoadedTemplate] {
        &self.loaded
    }

    /// The language of the prompts: that of the template which `ai_ask` uses, or else of the first one.
    pub fn language(&self) -> PromptLanguage {
        let first = self.get("ai_ask", 1).or_else(|_| self.at(0));
        first.map(|template| template.language()).unwrap_or_default()
    }

    /// The number of the last rendered template in `marks`. Two layers may have files of the same name.
    pub fn last_rendered(&self, marks: &Marks) -> Option<usize> {
        let key = marks.template()?;
        self.loaded.iter().position(|loaded| loaded.key == key)
    }

    /// The number of the file with this name, as templates and kinds refer to it.
    pub fn number(&self, file: &str) -> Option<usize> {
        self.by_name.get(file).copied()
    }

    fn tried(&self, file: &str) -> Message {
        let tried = self.places.iter().map(|place| Message::text(display_name(place, file)));
        msg!("tried {}", Message::list(Joint::Item, tried))
    }

    /// The template `name` (`ai_ask`) in a version.
    /// Errors: It does not exist (with the places that were tried and the available versions), or it or a template that it refers to has
    /// a mistake.
    pub fn get(&self, name: &str, version: u32) -> Result<Template<'_>, TemplateError> {
        let file = format!("{name}_v{version}.md");
        let Some(number) = self.by_name.get(&file) else {
            let versions: BTreeSet<u32> =
                self.loaded.iter().filter_map(|loaded| version_of(loaded.name(), name)).collect();
            let mut help = self.tried(&file);
            if !versions.is_empty() {
                help = msg!("{help}; available versions: {}", Message::values(versions));
            } else if let Some(near) = did_you_mean(&file, self.loaded.iter().map(|loaded| loaded.name())) {
                help = msg!("{near} ({help})");
            }
            return Err(TemplateError::new(msg!("there is no template `{name}` in version {version}")).with_help(help));
        };
        let template = self.at(*number)?;
        match self.loaded.get(*number).and_then(LoadedTemplate::blank) {
            Some(error) => Err(error.clone()),
            None => Ok(template),
        }
    }

    /// The template with this number, including parts of other templates.
    /// Errors: It or a template that it refers to has a mistake; the number is invalid.
    pub fn at(&self, number: usize) -> Result<Template<'_>, TemplateError> {
        match (self.problem_of(number), self.loaded.get(number)) {
            (Some(problem), _) => Err(problem.clone()),
            (None, Some(loaded)) => Ok(Template::new(self, loaded)),
            (None, None) => Err(TemplateError::new("there is no such template")),
        }
    }

    /// The problems of all files, each once, even if no template needs the file.
    pub fn problems(&self) -> Vec<&TemplateError> {
        let mut problems: Vec<&TemplateError> = Vec::new();
        for problem in (0..self.loaded.len()).filter_map(|number| self.problem_of(number)) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

impl TemplateLibrary for Templates {
    fn uses(&self, template: usize) -> &Uses {
        static NONE: Uses = Uses {
            names: Vec::new(),
            places: Vec::new(),
            targets: Vec::new(),
            blocks: Vec::new(),
            rejected: Vec::new(),
        };
        self.loaded.get(template).map_or(&NONE, LoadedTemplate::uses)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

/// Connects the environment to the files: it loads and compiles each template once, by its name.
fn connect(
    environment: &mut Environment<'static>,
    loaded: &Arc<[LoadedTemplate]>,
    by_name: &HashMap<String, usize>,
    sentinels: &Sentinels,
) -> Arc<Operations> {
    let operations = Operations::install(environment, ExpressionDialect::Template);
    let rewriting = Arc::clone(&operations);
    let keys: HashMap<String, String> =
        by_name.iter().filter_map(|(name, number)| Some((name.clone(), loaded.get(*number)?.key.clone()))).collect();
    environment.set_path_join_callback(move |name, _parent| match keys.get(name) {
        Some(key) => Cow::Owned(key.clone()),
        None => Cow::Owned(format!("{UNKNOWN}{name}")),
    });
    let (files, sentinels) = (Arc::clone(loaded), sentinels.clone());
    environment.set_loader(move |key| match key.strip_prefix(UNKNOWN) {
        Some(name) if is_outside(name) => Err(error_with_message(ErrorKind::InvalidOperation, outside_message(name))),
        Some(name) => Err(error_with_message(ErrorKind::TemplateNotFound, msg!("there is no template `{name}`"))),
        None => match files.iter().find(|file| file.key == key) {
            // Only computed names can refer to a file with mistakes, because the others are checked before rendering.
            Some(file) => match file.mistakes().first() {
                Some(mistake) => Err(error_with_message(ErrorKind::InvalidOperation, mistake.to_message())),
                None => Ok(Some(rewriting.rewrite(key, &sentinels.insert(file.body())))),
            },
            None => Ok(None),
        },
    });
    operations
}

/// The files by layer, in lookup order.
fn in_order(files: &[TemplateFile]) -> Result<Vec<(TemplateLayer, &TemplateFile)>, TemplateError> {
    if files.len() > MAX_FILES {
        return Err(TemplateError::new(msg!("a session can have at most {MAX_FILES} templates")));
    }
    let mut ordered = Vec::with_capacity(files.len());
    for file in files {
        let layer = TemplateLayer::of(&file.place)
            .filter(|_| is_template_name(&file.name) && file.text.len() <= MAX_FILE_BYTES);
        let layer = layer.ok_or_else(|| {
            let name = format!("{}/{}", file.place, file.name);
            TemplateError::new(msg!("`{}` cannot be used as a template", name.escape_debug()))
        })?;
        ordered.push((layer, file));
    }
    ordered.sort_by_key(|(layer, _)| *layer);
    Ok(ordered)
}

fn version_of(file: &str, name: &str) -> Option<u32> {
    file.strip_prefix(name)?.strip_prefix("_v")?.strip_suffix(".md")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::names::TemplateNames;

    const NONCE: &str = "00112233445566778899aabbccddeeff";

    fn files(files: &[(&str, &str)]) -> Vec<TemplateFile> {
        let file = |(path, text): &(&str, &str)| {
            let (place, name) = path.rsplit_once('/').unwrap();
            TemplateFile { place: place.into(), name: name.into(), text: (*text).into() }
        };
        files.iter().map(file).collect()
    }

    fn templates(list: &[(&str, &str)]) -> Templates {
        Templates::new(&files(list), NONCE).unwrap()
    }

    #[test]
    fn the_lookup_order_does_not_depend_on_the_order_of_the_files() {
        let all = [
            ("builtin/default/a_v1.md", "text"),
            ("default/a_v1.md", "text"),
            ("builtin/custom/s/a_v1.md", "text"),
            ("custom/s/a_v1.md", "text"),
        ];
        let shown = [
            "builtin:_system/config/default/",
            "_system/config/default/",
            "builtin:_system/config/custom/s/",
            "_system/config/custom/s/",
        ];
        for length in 1..=all.len() {
            let templates = templates(&all[..length]);
            assert_eq!(templates.get("a", 1).unwrap().file(), format!("{}a_v1.md", shown[length - 1]));
        }
    }

    #[test]
    fn the_error_of_a_missing_template_lists_the_places_that_were_tried() {
        let templates =
            templates(&[("custom/english/a_v1.md", ""), ("default/a_v3.md", ""), ("default/other_v1.md", "")]);
        let error = templates.get("a", 2).unwrap_err();
        assert_eq!(error.message, "there is no template `a` in version 2");
        insta::assert_snapshot!(error.help.unwrap(), @"tried _system/config/custom/english/a_v2.md, builtin:_system/config/custom/english/a_v2.md, _system/config/default/a_v2.md, builtin:_system/config/default/a_v2.md; available versions: 1, 3");
        assert!(templates.get("othr", 1).unwrap_err().help.unwrap().to_string().contains("`other_v1.md`"));
    }

    #[test]
    fn a_template_without_text_is_an_error_but_an_empty_part_is_not() {
        let templates = templates(&[
            ("default/empty_v1.md", ""),
            ("default/settings_v1.md", "---\nmodel: m\n---\n\n"),
            ("default/comment_v1.md", "{# to do\n #}\n<!-- user -->\n"),
            ("default/part.md", ""),
            ("default/whole_v1.md", "x{% include 'part.md' %}"),
            ("default/never_v1.md", "{% include 'part.md' %}"),
        ]);
        for name in ["empty", "settings", "comment"] {
            let error = templates.get(name, 1).unwrap_err();
            assert!(error.message.to_string().contains("is empty"), "{name}: {}", error.message);
        }
        assert!(templates.get("whole", 1).unwrap().render(&TemplateNames::default()).is_ok());
        let error = templates.get("never", 1).unwrap().render(&TemplateNames::default()).unwrap_err();
        assert!(error.message.to_string().contains("produced no text"), "{}", error.message);
    }

    #[test]
    fn an_invalid_file_is_an_error_only_for_the_templates_that_need_it() {
        let templates = templates(&[
            ("default/README.md", "write {% like this"),
            ("default/good_v1.md", "{{ x }}"),
            ("default/bad_v1.md", "---\nmodel: m\n---\n{{ x | uper }}"),
            ("default/user_v1.md", "{% include 'README.md' %}"),
            ("default/lost_v1.md", "a\n {% include 'REDME.md' %}"),
            ("default/loop_v1.md", "{% extends 'loop_v1.md' %}"),
            ("default/front_v1.md", "---\nmodle: m\n---\n"),
        ]);
        assert!(templates.get("good", 1).is_ok());
        let error = |name: &str| templates.get(name, 1).unwrap_err();
        assert_eq!(error("bad").to_string(), "_system/config/default/bad_v1.md:4:8: there is no filter `uper`");
        assert_eq!(error("user").file.as_deref(), Some("_system/config/default/README.md"));
        assert_eq!(
            (error("lost").line, error("lost").help.as_ref().map(ToString::to_string).as_deref()),
            (Some(2), Some("did you mean `README.md`?"))
        );
        assert_eq!(
            error("loop").help.as_ref().map(ToString::to_string).as_deref(),
            Some("to extend the default template, write `default:loop_v1.md`")
        );
        assert_eq!(
            (error("front").line, error("front").help.as_ref().map(ToString::to_string).as_deref()),
            (Some(2), Some("did you mean `model`?"))
        );
        assert_eq!(templates.problems().len(), 5);
    }

    #[test]
    fn a_missing_template_after_a_role_marker_has_the_right_line() {
        let file = "<!-- system -->\n你好\n<!-- user -->\n{% include 'lost.md' %}";
        let templates = templates(&[("default/a_v1.md", file)]);
        let error = templates.get("a", 1).unwrap_err();
        assert_eq!((error.line, error.column), (Some(4), Some(12)));
        assert_eq!(&file[error.mistake.unwrap().range], "'lost.md'");
    }

    #[test]
    fn names_have_ranges_in_the_file() {
        let file = "\u{feff}---\nmodel: m\n---\n<!-- system -->\n你好 {{ 用户名 }}{{ x | default(1) }}";
        let templates = templates(&[("default/a_v1.md", file)]);
        let template = templates.get("a", 1).unwrap();
        let names: Vec<_> = template.names().iter().map(|used| (&file[used.range.clone()], used.optional)).collect();
        assert_eq!(names, [("用户名", false), ("x", true)]);
        assert_eq!(template.front().model.as_deref(), Some("m"));
    }

    #[test]
    fn mentioned_names_include_loaded_templates_but_not_replaced_blocks() {
        let base = "{{ root }}{% block a %}{{ in_a }}{% block inner %}{{ in_inner }}{% endblock %}{% endblock %}{% block b %}{{ in_b }}{% endblock %}{% include 'part.md' %}{% import 'macros.md' as m %}";
        let child = "{% extends 'default:t_v1.md' %}{{ lost }}{% set kept = used %}{% block a %}{{ own_a }}{% endblock %}{% block b %}{{ super() }}{% endblock %}";
        let templates = templates(&[
            ("custom/s/t_v1.md", child),
            ("default/t_v1.md", base),
            ("default/part.md", "{{ in_part }}{% include 'part.md' %}"),
            ("default/macros.md", "{{ lost_in_import }}{% macro m() %}{{ in_macro }}{% endmacro %}"),
        ]);
        let template = templates.get("t", 1).unwrap();
        let mentioned: Vec<&str> = template.mentioned().map(|(name, _)| name).collect();
        assert_eq!(mentioned, ["in_b", "in_macro", "in_part", "lost_in_import", "own_a", "root", "used"]);
        assert!(template.mentions("root") && !template.mentions("in_inner"));
    }

    #[test]
    fn pinned_files_that_cannot_be_templates_are_rejected() {
        let long = "x".repeat(MAX_FILE_BYTES + 1);
        for (path, text) in [
            ("elsewhere/a.md", ""),
            ("custom/../a.md", ""),
            ("default/a.txt", ""),
            ("default/.md", ""),
            ("default/a.md", long.as_str()),
        ] {
            assert!(Templates::new(&files(&[(path, text)]), NONCE).is_err(), "{path}");
        }
        assert!(Templates::new(&[], "guess").unwrap_err().message.to_string().contains("mark"));
    }

    #[test]
    fn all_embedded_templates_compile() {
        struct Nothing;
        impl crate::template::layers::TemplateSource for Nothing {
            fn read(&self, _: crate::template::layers::TemplateFolder<'_>, _: &str) -> Result<Option<String>, Message> {
                Ok(None)
            }
            fn list(&self, _: crate::template::layers::TemplateFolder<'_>) -> Result<Vec<String>, Message> {
                Ok(Vec::new())
            }
        }
        for scheme in [None, Some("english")] {
            let files = crate::template::layers::collect(&Nothing, scheme).unwrap();
            let templates = Templates::new(&files, NONCE).unwrap();
            assert_eq!(templates.problems(), Vec::<&TemplateError>::new());
            for name in ["ai_ask", "ai_say", "ai_think", "ai_ask_monitor", "ai_say_monitor"] {
                assert!(templates.get(name, 1).is_ok(), "{name}");
            }
        }
    }
}
