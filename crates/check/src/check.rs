//! Checks a parsed file: compiles it to a [`Program`], or reports its problems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::context::CheckContext;
use crate::documents::{CheckedDocument, RuleSelection, session, skill};
use crate::full_width_values::full_width_values;
use crate::reachable_skills::reached;
use crate::secrets::secrets;
use crate::walk::Tree;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::kernel::WrittenKernel;
use bcc_lang::script::legacy::engine::legacy_engine_fields;
use bcc_lang::script::read::{ScriptDocument, document, is_protocol_state, read};
use bcc_lang::script::script::Script;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::shared::mark_shared_fixes_unsure;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{ParsedYaml, YamlNode};
use bcc_lang::template::text::AuthorTexts;
use bcc_runtime::notebook::kernel::contract::{ExecPolicy, KernelSettings, KernelSource, OnResume, ServerKernel};
use bcc_runtime::notebook::protocol::state_document::read::read_state;
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::program::{ActionNeedingPermission, Phase, Program, routes_errors};
use bcc_runtime::program::route_table::ChangeTable;

/// Checks the script in a parsed file and the skills that it reaches, as `run` does: whatever cannot run is an error. Returns
/// the program if there is no error, and all diagnostics, sorted by file and position.
pub fn check(
    file: &Arc<SourceFile>,
    parsed: ParsedYaml,
    context: &CheckContext<'_>,
) -> (Option<Program>, Vec<Diagnostic>) {
    let findings = Findings::new();
    findings.extend(parsed.diagnostics);
    let root = parsed.root;
    let older = root.as_deref().map(|root| legacy_engine_fields(file, root)).unwrap_or_default();
    let regions: Vec<Span> = older.iter().map(|older| older.region).collect();
    findings.extend(older.into_iter().map(|older| older.diagnostic));
    let in_order = |findings| in_order(findings, file, root.as_deref(), &regions);
    let Some(script) = root.as_ref().and_then(|root| read(file, root, &findings)) else {
        return (None, in_order(findings));
    };
    let mut texts = AuthorTexts::new();
    let checked = session(&script, context, &mut texts, &findings, RuleSelection::Essential);
    let reached = reached(&script, checked.needs, context, &mut texts, &findings);
    let valid = !findings.has_errors() && !reached.broken;
    let mut diagnostics = in_order(findings);
    diagnostics.extend(reached.diagnostics);
    sort(&mut diagnostics);
    let language = context.templates.language();
    let program = checked.tree.filter(|_| valid).map(|tree| Program {
        file: Arc::clone(file),
        id: script.id.value.clone(),
        name: script.name.clone(),
        who: script.who.clone().unwrap_or_else(|| language.who().into()),
        user: script.user.clone().unwrap_or_else(|| language.user().into()),
        goal: tree.goal,
        model: script.model.as_ref().map(|model| model.value.clone()),
        history_messages: script.history.messages as usize,
        history_chars: script.history.chars as usize,
        history_economical: script.history.economical,
        globals: tree.globals,
        declarations: tree.declarations,
        watched_names: watched_names(&tree.changes, &tree.phases),
        changes: tree.changes,
        phases: tree.phases,
        routes: tree.routes,
        triggers: tree.triggers,
        budget: Budget::of(script.budget.as_ref()),
        earlier: script.earlier.clone(),
        custom: context.custom.clone(),
        // If both need a permission, the action of the script is named.
        needs: reached.permissions.into_iter().chain(checked.permissions).collect(),
        servers: reached.servers.into_iter().chain(checked.servers).collect(),
        kernel: kernel(script.kernel.as_ref()),
        report: script.report.clone(),
        tools: tree.tools,
        // Skills from files never duplicate skills of the script itself.
        skills: tree.skills.into_iter().chain(reached.skills).map(|skill| (skill.id.clone(), skill)).collect(),
        inserts: checked.inserts,
        growing_lists: checked.growing_lists,
        mistaken_expressions: reached.mistaken_expressions.into_iter().chain(checked.mistaken_expressions).collect(),
        texts,
        templates: Arc::clone(&context.templates),
    });
    (program, diagnostics)
}

fn kernel(written: Option<&WrittenKernel>) -> KernelSettings {
    let default = KernelSettings::default();
    let Some(written) = written else { return default };
    let source = match (&written.connection_file, &written.jupyter) {
        (Some(file), _) => KernelSource::ConnectionFile(file.clone()),
        (None, Some(url)) => KernelSource::Server(ServerKernel {
            url: url.clone(),
            token_env: written.token_env.clone(),
            kernel_id: written.kernel_id.clone(),
        }),
        (None, None) => KernelSource::Installed,
    };
    KernelSettings {
        source,
        name: written.name.clone().unwrap_or(default.name),
        on_resume: if written.on_resume == Some("rerun") { OnResume::Rerun } else { OnResume::Fresh },
        exec: if written.exec == Some("approve") { ExecPolicy::Approve } else { ExecPolicy::Run },
        timeout: written.timeout.unwrap_or(default.timeout),
        start_timeout: written.start_timeout.unwrap_or(default.start_timeout),
        idle_timeout: written.idle_timeout.unwrap_or(default.idle_timeout),
    }
}

#[derive(Debug)]
pub struct Examined {
    pub diagnostics: Vec<Diagnostic>,
    /// The names to which the document assigns values, for templates that use them; `None` if a part could not be read.
    pub names: Option<BTreeSet<String>>,
    /// What a script or skill needs of its project and of the machine.
    pub needs: ScriptNeeds,
}

/// What a document needs of its project and of the machine to run. Empty for what is not a script or a skill.
#[derive(Debug, Default)]
pub struct ScriptNeeds {
    /// The permissions, each with the first action that needs it.
    pub permissions: BTreeMap<String, ActionNeedingPermission>,
    /// The behavior servers that are asked, each with the first action that does.
    pub servers: BTreeMap<String, ActionNeedingPermission>,
    /// The kernel of a script. That of a skill depends on the script that calls it.
    pub kernel: Option<KernelSettings>,
    /// Where a script says that a report is written when it ends.
    pub report: Option<Span>,
    /// Whether it may do without a kernel and servers: it has a route for `error`.
    pub routes_errors: bool,
}

impl ScriptNeeds {
    fn of(script: &Script, checked: CheckedDocument<Tree>) -> Self {
        Self {
            permissions: checked.permissions,
            servers: checked.servers,
            kernel: Some(kernel(script.kernel.as_ref())),
            report: script.report.as_ref().map(|report| report.out.span),
            routes_errors: checked.tree.is_some_and(|tree| routes_errors(&tree.routes, &tree.phases)),
        }
    }
}

/// Checks the document in a parsed file with all rules, as `validate` does.
pub fn examine(file: &Arc<SourceFile>, parsed: ParsedYaml, context: &CheckContext<'_>) -> Examined {
    let findings = Findings::new();
    let broken = parsed.root.is_none();
    let mut needs = ScriptNeeds::default();
    findings.extend(parsed.diagnostics);
    let mut names = (!broken).then(BTreeSet::new);
    findings.extend(secrets(file));
    let root = parsed.root;
    let older = root.as_deref().map(|root| legacy_engine_fields(file, root)).unwrap_or_default();
    let regions: Vec<Span> = older.iter().map(|older| older.region).collect();
    findings.extend(older.into_iter().map(|older| older.diagnostic));
    if let Some(root) = root.as_deref().filter(|root| is_protocol_state(root)) {
        findings.extend(read_state(file, root).1);
        let diagnostics = in_order(findings, file, Some(root), &regions);
        return Examined { diagnostics, names: Some(BTreeSet::new()), needs };
    }
    match root.as_ref().and_then(|root| document(file, root, &findings)) {
        Some(ScriptDocument::Session(script)) => {
            findings.extend(root.iter().flat_map(|root| full_width_values(file, root)));
            let mut checked = session(&script, context, &mut AuthorTexts::new(), &findings, RuleSelection::All);
            names = checked.names.take();
            needs = ScriptNeeds::of(&script, checked);
        }
        Some(ScriptDocument::Skill(written)) => {
            findings.extend(root.iter().flat_map(|root| full_width_values(file, root)));
            let checked = skill(file, &written, context, &mut AuthorTexts::new(), &findings, RuleSelection::All);
            names = checked.names;
            needs =
                ScriptNeeds { permissions: checked.permissions, servers: checked.servers, ..ScriptNeeds::default() };
        }
        Some(ScriptDocument::Workflow(Some(script))) => {
            let found = Findings::new();
            let mut checked = session(&script, context, &mut AuthorTexts::new(), &found, RuleSelection::All);
            names = checked.names.take();
            needs = ScriptNeeds::of(&script, checked);
            // Other programs may use the variables of a state file.
            findings.extend(found.into_vec().into_iter().filter(|found| found.rule != "unused-variable"));
        }
        Some(ScriptDocument::Workflow(None)) => names = None,
        // `check::test` checks a test against its script.
        Some(ScriptDocument::Test(_)) => {}
        None => names = None,
    }
    Examined { diagnostics: in_order(findings, file, root.as_deref(), &regions), names, needs }
}

/// The findings in the order of the file, without duplicates: an alias repeats its anchor with all problems in it. `older` are
/// the fields of an older engine, about which a finding says what they are.
fn in_order(findings: Findings, file: &Arc<SourceFile>, root: Option<&YamlNode>, older: &[Span]) -> Vec<Diagnostic> {
    const CONSEQUENCES: [&str; 4] = ["deprecated-field", "missing-key", "unknown-key", "wrong-type"];
    let mut diagnostics = findings.into_vec();
    diagnostics.retain(|found| {
        let inside = |region: &Span| region.start <= found.span.start && found.span.end <= region.end;
        !(CONSEQUENCES.contains(&found.rule) && older.iter().any(inside))
    });
    sort(&mut diagnostics);
    diagnostics
        .dedup_by(|a, b| (a.rule, a.span, &a.message) == (b.rule, b.span, &b.message) && Arc::ptr_eq(&a.file, &b.file));
    if let Some(root) = root {
        mark_shared_fixes_unsure(file, root, &mut diagnostics);
    }
    diagnostics
}

/// Every variable with a route in a table `on_change`.
fn watched_names(session: &ChangeTable, phases: &[Phase]) -> BTreeSet<String> {
    let topics = phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.changes);
    let tables = phases.iter().map(|phase| &phase.changes).chain(topics).chain([session]);
    tables.flat_map(|table| table.iter()).map(|(name, _)| name.to_owned()).collect()
}
