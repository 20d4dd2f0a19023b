//! Asks what runs elsewhere and scripts need: behavior servers, Jupyter servers and kernels that run already. `run` refuses a script
//! without them. Only `validate` of the command line asks; checks in editors and servers contact nothing.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::validate::checked_project::CheckedProject;
use crate::validate::request::ValidateReport;
use bcc_check::allow::allow;
use bcc_check::check::ScriptNeeds;
use bcc_check::levels::RuleLevels;
use bcc_engine::environment::Environment;
use bcc_engine::host_services::{ask_server, project_host_services};
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::text::SourceFile;
use bcc_runtime::notebook::kernel::contract::{KernelSettings, KernelSource};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::ActionNeedingPermission;

/// How long each of them has to answer.
const MAX_WAIT: Duration = Duration::from_secs(MAX_SECONDS);
const MAX_SECONDS: u64 = 3;

/// What a document needs that only an attempt can find.
#[derive(Clone, Debug)]
pub struct NeededServices {
    file: Arc<SourceFile>,
    /// The directory of the project.
    project: PathBuf,
    levels: RuleLevels,
    servers: BTreeMap<String, ActionNeedingPermission>,
    /// The first action that runs code, and the kernel that must run already.
    kernel: Option<(ActionNeedingPermission, KernelSettings)>,
}

impl NeededServices {
    /// What a document of `project` needs. None if it needs nothing, or may do without.
    pub(crate) fn of(file: &Arc<SourceFile>, needs: &ScriptNeeds, project: &CheckedProject) -> Option<Self> {
        if needs.routes_errors {
            return None;
        }
        let named = &project.config.behavior_servers;
        let servers = needs.servers.iter().filter(|(name, _)| named.contains_key(name.as_str()));
        let servers: BTreeMap<_, _> = servers.map(|(name, asking)| (name.clone(), asking.clone())).collect();
        let elsewhere = needs.kernel.as_ref().filter(|kernel| kernel.source != KernelSource::Installed);
        let kernel = needs.permissions.get("exec").cloned().zip(elsewhere.cloned());
        let (file, levels, project) = (Arc::clone(file), project.levels.clone(), project.directory.clone());
        let is_needed = !servers.is_empty() || kernel.is_some();
        is_needed.then_some(Self { file, project, levels, servers, kernel })
    }

    /// The finding as the project and the comments of the file want it; none if they silence it.
    fn finding(
        &self,
        rule: &'static str,
        at: &ActionNeedingPermission,
        problem: &ServiceProblem,
    ) -> Option<Diagnostic> {
        let (action, reason) = (&at.action, &problem.message);
        let message = match rule {
            MISSING_SERVER => msg!("the action `{action}` asks a behavior server: {reason}"),
            _ => msg!("the action `{action}` runs code: {reason}"),
        };
        let found = Diagnostic::info(rule, message, &self.file, at.span);
        let found = match &problem.help {
            Some(help) => found.with_help(help.clone()),
            None => found,
        };
        // Other findings about comments were reported when the file was checked.
        self.levels.apply(allow(&self.file, vec![found])).into_iter().find(|found| found.rule == rule)
    }

    fn is_wanted(&self, rule: &'static str, at: &ActionNeedingPermission) -> bool {
        self.finding(rule, at, &ServiceProblem::default()).is_some()
    }
}

const MISSING_SERVER: &str = "missing-server";
const MISSING_KERNEL: &str = "missing-kernel";

/// Why a service cannot be used.
#[derive(Clone, Debug, Default)]
struct ServiceProblem {
    message: Message,
    help: Option<Message>,
}

/// What is asked once, however many scripts need it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AskedService {
    Server(String),
    /// The settings as text: those that differ are different kernels.
    Kernel(String),
}

/// Adds what is missing of the services that the checked scripts need. Each is asked once, all at the same time. Only a project that
/// the person trusts has anything contacted, or any project with `trust`.
pub async fn with_missing_services(
    mut report: ValidateReport,
    trust: bool,
    environment: &Environment,
) -> ValidateReport {
    let services = std::mem::take(&mut report.services);
    if services.is_empty() {
        return report;
    }
    let problems = ask(&services, trust, environment).await;
    for needed in &services {
        let problem = |asked: AskedService| problems.get(&(needed.project.clone(), asked));
        for (name, at) in &needed.servers {
            let problem = problem(AskedService::Server(name.clone()));
            report.diagnostics.extend(problem.and_then(|problem| needed.finding(MISSING_SERVER, at, problem)));
        }
        if let Some((at, kernel)) = &needed.kernel {
            let problem = problem(AskedService::Kernel(identity(kernel)));
            report.diagnostics.extend(problem.and_then(|problem| needed.finding(MISSING_KERNEL, at, problem)));
        }
    }
    sort(&mut report.diagnostics);
    report
}

fn identity(kernel: &KernelSettings) -> String {
    format!("{:?} {}", kernel.source, kernel.name)
}

async fn ask(
    services: &[NeededServices],
    trust: bool,
    environment: &Environment,
) -> BTreeMap<(PathBuf, AskedService), ServiceProblem> {
    let mut hosts: BTreeMap<PathBuf, Option<Arc<HostServices>>> = BTreeMap::new();
    let mut asked = BTreeSet::new();
    let mut answers = JoinSet::new();
    for needed in services {
        let host = hosts.entry(needed.project.clone()).or_insert_with(|| {
            // An invalid configuration was reported.
            let project = Project::in_directory(needed.project.clone(), trust, environment).ok()?;
            Some(Arc::new(project_host_services(&project, environment)))
        });
        let Some(host) = host else { continue };
        for (name, at) in &needed.servers {
            let key = (needed.project.clone(), AskedService::Server(name.clone()));
            if !needed.is_wanted(MISSING_SERVER, at) || !asked.insert(key.clone()) {
                continue;
            }
            let (host, name) = (Arc::clone(host), name.clone());
            answers.spawn(async move { (key, server_problem(&name, &host).await) });
        }
        let may_ask = host.permissions.check("exec").is_ok();
        if let Some((at, kernel)) = needed.kernel.as_ref().filter(|_| may_ask) {
            let key = (needed.project.clone(), AskedService::Kernel(identity(kernel)));
            if !needed.is_wanted(MISSING_KERNEL, at) || !asked.insert(key.clone()) {
                continue;
            }
            let (host, kernel) = (Arc::clone(host), kernel.clone());
            answers.spawn(async move { (key, kernel_problem(&kernel, &host).await) });
        }
    }
    let answers = answers.join_all().await.into_iter();
    answers.filter_map(|(key, problem)| Some((key, problem?))).collect()
}

async fn server_problem(name: &str, host: &HostServices) -> Option<ServiceProblem> {
    match timeout(MAX_WAIT, ask_server(name, host)).await {
        Ok(answer) => answer.err().map(|error| ServiceProblem { message: error.message, help: error.help }),
        Err(_) => Some(ServiceProblem {
            message: msg!("the behavior server `{name}` did not answer within {MAX_SECONDS} seconds"),
            help: Some(Message::word("`run` waits longer before it refuses the script")),
        }),
    }
}

async fn kernel_problem(kernel: &KernelSettings, host: &HostServices) -> Option<ServiceProblem> {
    match timeout(MAX_WAIT, host.kernel.check_available(kernel)).await {
        Ok(answer) => answer.err().map(|error| ServiceProblem { message: error.message, help: error.help }),
        Err(_) => Some(ServiceProblem {
            message: msg!("the kernel did not answer within {MAX_SECONDS} seconds"),
            help: Some(Message::word("`run` waits longer before it refuses the script")),
        }),
    }
}
