//! Runs tests: each case is a separate conversation; several run in parallel, and results are in the order of the files.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::test_runner::conversation::{ConversationEnd, TestConversation, TestSetting};
use crate::test_runner::find::{TestFile, Tests};
use crate::test_runner::models::{TestModels, Watch};
use crate::test_runner::persona::{self, PersonaSkipped};
use crate::test_runner::redaction::mask;
use crate::test_runner::request::{LIMIT_OF_REAL_MODELS, TestRequest, USUAL_LIMIT};
use crate::test_runner::result::{TestResult, TestStatus};
use crate::test_runner::scripts::{LoadedScript, ScriptError, Scripts};
use crate::test_runner::snapshots::conversation::{snapshot, stale};
use crate::test_runner::snapshots::orphaned::orphaned;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::current_directory;
use bcc_engine::discovery::written_path::resolve;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::given_directory;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::tested_script;
use bcc_lang::script::test::cases::CaseValues;
use bcc_lang::script::test::dialogue::DialogueStep;
use bcc_lang::script::test::replies::Model;
use bcc_lang::script::test::test::{WrittenTest, read_case};
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_llm::providers::scripted::time::VirtualTime;

/// The same stack size as for `validate`, because a plan is checked like a script.
const STACK_BYTES: usize = 8 * 1024 * 1024;

pub struct TestReport {
    /// All cases, in the order of the files and of their cases.
    pub results: Vec<TestResult>,
    /// Scripts with errors or that could not be read, without duplicates.
    pub script_errors: Vec<ScriptError>,
    /// Snapshot files that no test uses, by the names that messages use; empty if only some tests were run.
    pub stale: Vec<String>,
}

impl TestReport {
    /// What is wrong with the tests, which were run, and with their scripts, by file and position.
    pub fn findings(&self, tests: &Tests) -> Vec<Diagnostic> {
        let of_scripts = self.script_errors.iter().flat_map(|error| &error.diagnostics);
        let mut findings: Vec<Diagnostic> = tests.diagnostics.iter().chain(of_scripts).cloned().collect();
        sort(&mut findings);
        findings
    }
}

/// Runs the given tests.
/// Errors: `Usage` if the given project does not exist, or if a project was changed since it was trusted; `Failed` if threads cannot be
/// started.
pub fn run(tests: &Tests, request: &TestRequest, environment: &Environment) -> Result<TestReport, EngineError> {
    let given = given_directory(request.project.as_deref(), environment)?;
    let directory = request.named_from.clone().map_or_else(current_directory, Ok)?;
    let names = PathNames::relative_to(directory);
    let scripts = Scripts::new(given, request.trust, environment.clone(), names);
    let wanted = request.filter.as_ref().map(|filter| filter.to_lowercase());
    let jobs: Vec<(&TestFile, usize, Option<&CaseValues>)> = tests
        .files
        .iter()
        .flat_map(|test| match &test.cases {
            Some(cases) if test.errors == 0 => {
                cases.iter().enumerate().map(|(number, case)| (test, number, Some(case))).collect()
            }
            _ => vec![(test, 0, None)],
        })
        .filter(|(test, _, case)| {
            let case = case.map(|case| case.name.as_str()).unwrap_or_default();
            let title = format!("{} [{case}] {}", test.name, test.file.name()).to_lowercase();
            wanted.as_ref().is_none_or(|wanted| title.contains(wanted.as_str()))
        })
        .collect();
    for tests in jobs.chunk_by(|(one, ..), (other, ..)| one.real == other.real) {
        let Some((test, ..)) = tests.first() else { continue };
        if let Some(Ok(path)) = tested_script(&test.root).map(|path| resolve(path, &test.real)) {
            scripts.refuse_changes(&path)?;
        }
    }
    let runner = Runner { request, tests, scripts: &scripts, stop: AtomicBool::new(false) };
    let available = || thread::available_parallelism().map_or(1, usize::from);
    let workers = request.jobs.unwrap_or_else(available).clamp(1, 64).min(jobs.len().max(1));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, job)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, jobs.get(index)?)))
        {
            done.push((index, runner.case(job.0, job.1, job.2)));
        }
        done
    };
    let mut results = thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let threads = (0..workers).map(spawn).collect::<Result<Vec<_>, _>>();
        let threads = threads.map_err(|error| EngineError::failed(msg!("cannot start a thread: {error}")))?;
        let mut results = Vec::with_capacity(jobs.len());
        for thread in threads {
            results.extend(thread.join().map_err(|_| EngineError::failed("a test stopped unexpectedly"))?);
        }
        Ok::<_, EngineError>(results)
    })?;
    results.sort_unstable_by_key(|(index, _)| *index);
    let ran: Vec<TestResult> = results.into_iter().map(|(_, ran)| ran).collect();
    let mut stale = if wanted.is_none() { stale(tests, &ran) } else { vec![] };
    if wanted.is_none() && !request.fail_fast {
        stale.extend(tests.snapshot_folders.iter().flat_map(orphaned));
    }
    Ok(TestReport { results: ran, script_errors: scripts.untried(), stale })
}

struct Runner<'r> {
    request: &'r TestRequest,
    tests: &'r Tests,
    scripts: &'r Scripts,
    stop: AtomicBool,
}

impl Runner<'_> {
    fn case(&self, test: &TestFile, number: usize, case: Option<&CaseValues>) -> TestResult {
        let started = Instant::now();
        let blank = TestResult {
            file: Arc::clone(&test.file),
            real: test.real.clone(),
            test: test.name.clone(),
            case: case.map(|case| case.name.clone()),
            number,
            status: TestStatus::Broken,
            reason: None,
            errors: vec![],
            failures: vec![],
            notes: vec![],
            snapshot: None,
            transcript: vec![],
            journal: vec![],
            program: None,
            script: None,
            turns: 0,
            model_calls: 0,
            sessions: 0,
            took: Duration::ZERO,
        };
        if self.request.fail_fast && self.stop.load(Ordering::Relaxed) {
            let why = Some(Message::word("not run: another test already failed (--fail-fast)"));
            return TestResult { status: TestStatus::Skipped, reason: why, ..blank };
        }
        let mut ran = blank.clone();
        // A panic in the interpreter fails only this test.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.converse(test, case, &mut ran)));
        let ran = match outcome {
            Ok(()) => ran,
            Err(panic) => TestResult { reason: Some(panic_message(panic.as_ref())), ..blank },
        };
        if ran.failed() {
            self.stop.store(true, Ordering::Relaxed);
        }
        TestResult { took: started.elapsed(), ..ran }
    }

    fn converse(&self, test: &TestFile, case: Option<&CaseValues>, ran: &mut TestResult) {
        if test.errors > 0 {
            let many = if test.errors == 1 { Message::word("an error") } else { msg!("{} errors", test.errors) };
            ran.reason = Some(msg!("the test has {many}"));
            ran.errors = self.tests.errors_of(test).cloned().collect();
            return;
        }
        let findings = Findings::new();
        let written = read_case(&test.root, case, &test.file, &findings).filter(|_| !findings.has_errors());
        let Some(written) = written else {
            ran.errors = findings.into_vec().into_iter().filter(Diagnostic::is_error).collect();
            let first = ran.errors.first().map(|found| found.message.clone());
            ran.reason = Some(first.unwrap_or_else(|| Message::word("the test cannot be read")));
            return;
        };
        let path = written.script.as_ref().map(|path| resolve(&path.value, &test.real));
        let Some(Ok(path)) = path else {
            ran.reason = Some(Message::word("its script does not exist"));
            return;
        };
        // The command line has priority over the test, and the test over its script.
        let scheme = self.request.scheme.as_deref();
        let scheme = scheme.or(written.scheme.as_ref().map(|scheme| scheme.value.as_str()));
        let script = match self.scripts.get(&path, scheme) {
            Ok(script) => script,
            Err(error) => {
                ran.reason = Some(error.why);
                ran.errors = error.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
                return;
            }
        };
        ran.program = Some(Arc::clone(&script.program));
        ran.script = Some(script.path.clone());
        self.run_conversation(test, case, &written, &script, ran);
    }

    fn run_conversation(
        &self,
        test: &TestFile,
        case: Option<&CaseValues>,
        written: &WrittenTest,
        script: &LoadedScript,
        ran: &mut TestResult,
    ) {
        let persona = |step: &DialogueStep| matches!(step, DialogueStep::Persona(_));
        let real = is_real(written, self.request.model.as_deref()) || written.dialogue.iter().any(persona);
        let limit = if real { LIMIT_OF_REAL_MODELS } else { USUAL_LIMIT };
        let remember = written.expects().any(|expect| !expect.prompt.is_empty());
        let watch = Arc::new(Watch::new(written.turns, limit, remember));
        let time = Arc::new(VirtualTime::default());
        let asked = self.request.model.as_deref();
        let shared = self.scripts.shared();
        let context = (self.scripts.environment(), &shared);
        let models = TestModels::of(written, script, asked, context, &time, Arc::clone(&watch));
        let models = match models {
            Ok(models) => Arc::new(models),
            Err(error) => {
                let help = error.help().map(|help| msg!(" ({help})")).unwrap_or_default();
                ran.reason = Some(msg!("{error}{help}"));
                return;
            }
        };
        let personas = match persona::models(written, &models, script, asked, context) {
            Ok(personas) => personas,
            Err(skipped) => {
                (ran.status, ran.reason) = match skipped {
                    PersonaSkipped::Nobody(reason) => (TestStatus::Skipped, Some(reason)),
                    PersonaSkipped::Wrong(reason) => (TestStatus::Broken, Some(reason)),
                };
                return;
            }
        };
        fastrand::seed(u64::from(written.seed.unwrap_or(0)));
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // Programs that the script runs need I/O as well as timers.
        let has_services = !script.services.permissions.allowed.is_empty();
        let runtime = if real || has_services { builder.enable_all().build() } else { builder.enable_time().build() };
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                ran.reason = Some(msg!("the runtime cannot be started: {error}"));
                return;
            }
        };
        let mut conversation = TestConversation::new(TestSetting {
            test: written,
            file: &test.file,
            script,
            models,
            watch,
            time,
            one_of_several: case.is_some(),
            personas,
        });
        let result = runtime.block_on(async {
            match tokio::time::timeout(limit, conversation.run()).await {
                Ok(result) => result,
                Err(_) => Err(ConversationEnd::Broken(msg!("it did not finish within {} s", limit.as_secs()))),
            }
        });
        let (status, reason) = match result {
            Ok(()) => (TestStatus::Passed, None),
            Err(ConversationEnd::Failed) => (TestStatus::Failed, None),
            Err(ConversationEnd::Broken(reason)) => (TestStatus::Broken, Some(reason)),
        };
        (ran.status, ran.reason) = (status, reason);
        ran.turns = conversation.turns();
        ran.model_calls = conversation.model_calls();
        ran.sessions = conversation.sessions;
        ran.failures = std::mem::take(&mut conversation.failures);
        ran.notes = std::mem::take(&mut conversation.notes);
        ran.notes.extend(conversation.problems(ran.status));
        ran.transcript = std::mem::take(&mut conversation.lines);
        ran.journal = conversation.log.journal();
        if ran.status == TestStatus::Passed
            && let Some(session) = &conversation.session
        {
            snapshot(test, written, session, self.request.update, ran);
        }
        mask(ran, conversation.masker());
        // Pending monitors are dropped here, inside their runtime.
        runtime.block_on(async { drop(conversation) });
    }
}

fn is_real(test: &WrittenTest, asked: Option<&str>) -> bool {
    let named = match &test.model {
        Some(Model::Scripted { .. }) => return false,
        Some(Model::Named(name)) => Some(name.value.as_str()),
        None => None,
    };
    asked.or(named).is_some_and(|name| name != "offline")
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> Message {
    let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    msg!("the interpreter stopped because of an internal error: {message}")
}
