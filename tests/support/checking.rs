//! Checks scripts as `run` does, without running them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bcc_engine::files::TemplateFolders;
use bcc_engine::pin::Pinned;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::collect;

/// All findings for the script `text`, with the templates of the project at `project` and these skill files.
pub(crate) fn findings(project: &Path, text: &str, skills: &[Arc<SourceFile>]) -> Vec<Diagnostic> {
    let file = Arc::new(SourceFile::new("example.yaml", text));
    let parsed = bcc_lang::source::compose::parse(&file);
    let scheme = parsed.root.as_deref().and_then(bcc_lang::script::read::scheme);
    let templates =
        collect(&TemplateFolders::of(project), scheme.as_ref().map(|scheme| scheme.value.as_str())).unwrap();
    let pinned = Pinned { skills: skills.to_vec(), ..Pinned::new(file, templates, BTreeMap::new()) };
    let (program, found) = pinned.check(parsed).unwrap();
    assert_eq!(program.is_none(), found.iter().any(Diagnostic::is_error));
    found
}

pub(crate) fn findings_report(found: &[Diagnostic]) -> String {
    let line = |found: &Diagnostic| {
        format!(
            "[{}] {} ({})",
            found.rule,
            found.message,
            found.help.as_ref().map(ToString::to_string).as_deref().unwrap_or("-")
        )
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}
