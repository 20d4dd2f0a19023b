//! Checks that the templates of each scheme can be read and rendered.

use crate::doctor::finding::DoctorFinding;
use crate::templates::catalog::TemplateCatalog;
use bcc_engine::files::TemplateFolders;
use bcc_engine::project::Project;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::layers::{DEFAULT_SCHEME, collect};
use bcc_lang::template::templates::Templates;

/// The maximum number of problems of a scheme that are listed individually.
const MAX_LISTED: usize = 5;

pub fn schemes(project: &Project) -> Vec<DoctorFinding> {
    let folders = TemplateFolders::of(&project.directory);
    let catalog = TemplateCatalog::of(&project.directory);
    let mut schemes = catalog.schemes();
    schemes.retain(|scheme| scheme != DEFAULT_SCHEME && catalog.is_of_project(scheme));
    let mut found: Vec<DoctorFinding> = check_scheme(&folders, None);
    for scheme in &schemes {
        found.extend(check_scheme(&folders, Some(scheme)));
    }
    // Problems of a scheme's files are already reported with the scheme.
    let is_reported = |path: &str| {
        let inside = |scheme: &String| path.starts_with(&format!("_system/config/custom/{scheme}/"));
        path.starts_with("_system/config/default") || schemes.iter().any(inside)
    };
    for error in catalog.errors() {
        let message = msg!("{}: {}", error.path, error.reason);
        match error.fatal {
            true if is_reported(&error.path) => {}
            true => found.push(DoctorFinding::problem("templates", message)),
            false => found.push(DoctorFinding::note("templates", message)),
        }
    }
    let chosen = project.config.project.scheme.as_ref().filter(|chosen| !schemes.contains(chosen));
    if let Some(chosen) = chosen {
        // A built-in scheme has no folder in the project.
        found.extend(check_scheme(&folders, Some(chosen)));
    }
    found
}

fn check_scheme(folders: &TemplateFolders, scheme: Option<&str>) -> Vec<DoctorFinding> {
    let subject = scheme.map_or_else(|| Message::word("the default templates"), |scheme| msg!("the scheme `{scheme}`"));
    let nonce = uuid::Uuid::now_v7().simple().to_string();
    let templates = collect(folders, scheme).and_then(|files| Templates::new(&files, &nonce));
    let templates = match templates {
        Ok(templates) => templates,
        Err(error) => return vec![problem(&subject, &error)],
    };
    let problems = templates.problems();
    if problems.is_empty() {
        return vec![DoctorFinding::ok("templates", msg!("{subject} can be rendered"))];
    }
    let mut found: Vec<DoctorFinding> =
        problems.iter().take(MAX_LISTED).map(|error| problem(&subject, error)).collect();
    if problems.len() > MAX_LISTED {
        let message = match problems.len() - MAX_LISTED {
            1 => msg!("{subject} has 1 more problem"),
            more => msg!("{subject} has {more} more problems"),
        };
        found.push(DoctorFinding::problem("templates", message).with_help("`bcc-script validate` shows them"));
    }
    found
}

fn problem(subject: &Message, error: &TemplateError) -> DoctorFinding {
    DoctorFinding::problem("templates", msg!("{subject}: {error}")).with_any_help(error.help.clone())
}
