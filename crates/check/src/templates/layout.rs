//! Assigns the files below `_system/` to layers of templates.

use std::collections::BTreeSet;

use crate::templates::template_set::{SystemFile, TemplateUse};
use bcc_lang::template::builtin::BUILTINS;
use bcc_lang::template::layers::{MAX_FILE_BYTES, TemplateFile, is_own_scheme, is_template_name, order};

/// The folder of the layers.
const CONFIG: &str = "_system/config/";

/// The files of a project, grouped by layer.
pub struct Layout<'a> {
    /// The files in layers, each with its layer and its name.
    pub layered: Vec<(&'a SystemFile, &'a str, &'a str)>,
    /// The files that no lookup finds.
    pub strays: Vec<&'a SystemFile>,
}

impl<'a> Layout<'a> {
    pub fn of(files: &'a [SystemFile]) -> Self {
        let mut layout = Self { layered: Vec::new(), strays: Vec::new() };
        for file in files {
            match layer(&file.path) {
                Some((place, name)) => layout.layered.push((file, place, name)),
                None => layout.strays.push(file),
            }
        }
        layout
    }

    /// The schemes of the project; the first is `None`, for a session without a scheme.
    pub fn schemes(&self) -> Vec<Option<&'a str>> {
        let named: BTreeSet<&str> =
            self.layered.iter().filter_map(|(_, place, _)| place.strip_prefix("custom/")).collect();
        std::iter::once(None).chain(named.into_iter().map(Some)).collect()
    }

    /// The templates of a session with this scheme in lookup order, each with its project file.
    pub fn set(&self, scheme: Option<&str>) -> (Vec<TemplateFile>, Vec<Option<TemplateUse<'a>>>) {
        let (mut files, mut sources) = (Vec::new(), Vec::new());
        for place in order(scheme) {
            if let Some(inside) = place.strip_prefix("builtin/") {
                for file in BUILTINS.iter().filter(|file| file.place == inside) {
                    let (place, name) = (place.clone(), file.name.to_owned());
                    files.push(TemplateFile { place, name, text: file.text.to_owned() });
                    sources.push(None);
                }
                continue;
            }
            for (file, _, name) in self.layered.iter().filter(|(_, layer, _)| *layer == place) {
                let readable = file.readable && file.source.text().len() <= MAX_FILE_BYTES;
                let text = if readable { file.source.text().to_owned() } else { String::new() };
                files.push(TemplateFile { place: place.clone(), name: (*name).to_owned(), text });
                sources.push(Some(TemplateUse { source: &file.source, readable }));
            }
        }
        (files, sources)
    }
}

/// Whether a file is in a folder of templates, regardless of its name.
pub(crate) fn is_in_layer(path: &str) -> bool {
    path.strip_prefix(CONFIG).and_then(|path| path.rsplit_once('/')).is_some_and(|(place, _)| is_layer(place))
}

fn is_layer(place: &str) -> bool {
    place == "default" || place.strip_prefix("custom/").is_some_and(is_own_scheme)
}

/// `default` or `custom/<scheme>`, and the file's name.
fn layer(path: &str) -> Option<(&str, &str)> {
    let (place, name) = path.strip_prefix(CONFIG)?.rsplit_once('/')?;
    (is_layer(place) && is_template_name(name)).then_some((place, name))
}
