//! Runs one conversation of a test: the steps of its dialogue in order, until an expectation fails.

use crate::test_runner::result::Shown;
use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::test_runner::clock::{TestClock, with_virtual_time, yield_to_tasks};
use crate::test_runner::commands::TestCommands;
use crate::test_runner::files::TestFiles;
use crate::test_runner::judge::{Judge, judge};
use crate::test_runner::kernel::TestKernel;
use crate::test_runner::log::Log;
use crate::test_runner::models::{TestModels, Watch};
use crate::test_runner::result::{TestFailure, TranscriptLine};
use crate::test_runner::scripts::LoadedScript;
use crate::test_runner::stop_reasons;
use crate::test_runner::tools::TestTools;
use bcc_engine::variables::convert_value;
use bcc_lang::message::message::Message;
use bcc_lang::script::test::dialogue::{DialogueStep, Restart};
use bcc_lang::script::test::test::WrittenTest;
use bcc_lang::script::test::text_expectation::TextExpectation;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::error::is_no_reply;
use bcc_llm::model::provider::Provider;
use bcc_llm::providers::scripted::time::VirtualTime;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::services::Services;
use bcc_runtime::run::error::RunError;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_runtime::run::start::{NewSession, SessionParts};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;

/// The id of the session; each test has its own store.
const SESSION: &str = "test";

/// The maximum number of errors and warnings of a session that are reported with a failure.
const MAX_PROBLEMS: usize = 10;

pub(crate) struct TestSetting<'t> {
    pub test: &'t WrittenTest,
    pub file: &'t Arc<SourceFile>,
    pub script: &'t LoadedScript,
    pub models: Arc<TestModels>,
    pub watch: Arc<Watch>,
    pub time: Arc<VirtualTime>,
    /// Whether the test has several cases.
    pub one_of_several: bool,
    /// The models of the simulated persons, in the order of the test.
    pub personas: VecDeque<Arc<dyn Provider>>,
}

/// A running conversation and its results.
pub(crate) struct TestConversation<'t> {
    pub(crate) setting: TestSetting<'t>,
    store: Arc<MemoryStore>,
    pub(crate) log: Arc<Log>,
    services: Services,
    pub(crate) commands: Arc<TestCommands>,
    pub(crate) tools: Arc<TestTools>,
    pub(crate) session: Option<Session>,
    pub lines: Vec<TranscriptLine>,
    /// The number of events from which [`TestConversation::lines`] was read.
    read: usize,
    /// The number of lines that the test has checked or skipped.
    pub(crate) checked: usize,
    /// The first event since the last input.
    pub(crate) since: usize,
    /// The sensitive values of the session while it is closed.
    masker: Masker,
    /// Whether the test expects that the session fails or stops, since it last continued.
    pub(crate) expects_failure: bool,
    pub failures: Vec<TestFailure>,
    /// Remarks that are not failures.
    pub notes: Vec<Message>,
    /// How often the session was started or resumed.
    pub sessions: u64,
    answers: u32,
}

pub(crate) enum ConversationEnd {
    Failed,
    Broken(Message),
}

impl From<RunError> for ConversationEnd {
    fn from(error: RunError) -> Self {
        Self::Broken(error.to_message())
    }
}

impl<'t> TestConversation<'t> {
    /// A conversation that has not started.
    pub(crate) fn new(setting: TestSetting<'t>) -> Self {
        let log = Arc::new(Log::default());
        let commands = Arc::new(TestCommands::new(setting.test.commands.clone(), Arc::clone(&setting.time)));
        let permitted =
            setting.script.program.tool_patterns().into_iter().filter(|name| !name.ends_with('*')).collect();
        let tools = Arc::new(TestTools::new(setting.test.tools.clone(), permitted));
        let services = Services {
            models: Arc::clone(&setting.models) as Arc<_>,
            clock: Arc::new(TestClock::new(setting.test.clock, Arc::clone(&setting.time))),
            observer: Arc::clone(&log) as Arc<_>,
            recheck: Arc::clone(&setting.script.recheck),
            recorder: None,
            keeps_globals: false,
            host: HostServices {
                kernel: Arc::new(TestKernel::default()),
                commands: Arc::clone(&commands) as Arc<_>,
                tools: Arc::clone(&tools) as Arc<_>,
                files: Arc::new(TestFiles::new(&setting.test.files)),
                permissions: Arc::clone(&setting.script.services.permissions),
                ..HostServices::default()
            },
        };
        Self {
            setting,
            store: Arc::new(MemoryStore::default()),
            log,
            services,
            commands,
            tools,
            session: None,
            lines: vec![],
            read: 0,
            checked: 0,
            since: 0,
            masker: Masker::default(),
            expects_failure: false,
            failures: vec![],
            notes: vec![],
            sessions: 0,
            answers: 0,
        }
    }

    /// Errors: if an expectation fails (see [`TestConversation::failures`]), or if the interpreter cannot continue.
    pub(crate) async fn run(&mut self) -> Result<(), ConversationEnd> {
        self.start().await?;
        self.advance().await?;
        let test = self.setting.test;
        for step in &test.dialogue {
            match step {
                DialogueStep::Ai(wording) => self.check_reply(wording).await?,
                DialogueStep::User(words) => self.send_input(&words.text, words.node.span).await?,
                DialogueStep::Persona(persona) => {
                    let Some(provider) = self.setting.personas.pop_front() else {
                        return Err(ConversationEnd::Broken(Message::word("there is no model for a simulated person")));
                    };
                    self.run_persona(persona, &provider).await?;
                }
                DialogueStep::Expect(expect) => self.check_expect(expect, self.since)?,
                DialogueStep::Wait(time, _) => self.wait(*time).await?,
                DialogueStep::Restart(restart) => self.restart(restart).await?,
                DialogueStep::Decide(decide) => self.decide(decide).await?,
            }
        }
        self.check_end()
    }

    fn parts(&self, lock: Arc<dyn bcc_store::contract::SessionLock>, budget: Budget) -> SessionParts {
        SessionParts {
            id: SESSION.to_owned(),
            program: Arc::clone(&self.setting.script.program),
            services: self.services.clone(),
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            lock,
            script: self.setting.script.program.id.clone(),
            model: self.setting.models.name.clone(),
            budget,
        }
    }

    async fn start(&mut self) -> Result<(), ConversationEnd> {
        let test = self.setting.test;
        let mut given = Vec::with_capacity(test.vars.len());
        for (name, value) in &test.vars {
            match convert_value(&self.setting.script.program, &name.value, value.clone()) {
                Ok(value) => given.push((name.value.clone(), value)),
                Err(error) => {
                    let help = error.help().cloned();
                    return Err(self.failure(
                        name.span,
                        error.to_message(),
                        Message::default(),
                        Message::default(),
                        help,
                    ));
                }
            }
        }
        let lock = self.store.lock(SESSION, "a test").await.map_err(RunError::from)?;
        let new_session = NewSession {
            user: test.user_id.clone().unwrap_or_else(|| "default".to_owned()),
            script_sha256: String::new(),
            settings: "{}".to_owned(),
            manifest: "{}".to_owned(),
            documents: vec![],
            given,
            notebook: None,
        };
        let session = Session::start(self.parts(lock, Budget::of(test.budget.as_ref())), new_session).await?;
        self.session = Some(session);
        self.sessions += 1;
        Ok(())
    }

    /// Runs turns until the session waits for input or cannot continue.
    pub(crate) async fn advance(&mut self) -> Result<(), ConversationEnd> {
        let time = Arc::clone(&self.setting.time);
        self.expects_failure = false;
        let Some(session) = &mut self.session else { return Ok(()) };
        let _: SessionPause = with_virtual_time(&time, session.advance()).await?;
        self.settle().await?;
        self.read_lines();
        stop_reasons::check_reply_count(self)?;
        stop_reasons::check_command_results(self)?;
        stop_reasons::check_tool_results(self)?;
        match self.setting.watch.endless() {
            Some(reason) => {
                let span = self.setting.test.name.as_ref().map_or(Span::default(), |name| name.node.span);
                let message = msg!("the conversation does not end: {why}", why = reason);
                let help = Message::word("check whether routes form a loop, or raise `turns:` in the test");
                Err(self.failure(span, message, Message::default(), Message::default(), Some(help)))
            }
            None => Ok(()),
        }
    }

    /// Accepts the results of monitors that need no time, as at a terminal.
    async fn settle(&mut self) -> Result<(), ConversationEnd> {
        loop {
            yield_to_tasks().await;
            // Results that arrive after the end of the session are ignored.
            let Some(session) = self.session.as_mut().filter(|session| !session.status().is_final()) else {
                return Ok(());
            };
            let has_arrived = tokio::select! {
                biased;
                () = session.wait_for_result() => true,
                () = std::future::ready(()) => false,
            };
            if !has_arrived {
                return Ok(());
            }
            session.commit_results().await?;
        }
    }

    pub(crate) fn read_lines(&mut self) {
        self.lines.extend(self.log.lines(self.read));
        self.read = self.log.count();
    }

    /// Resumes a session that stopped because its model gave no reply. Returns whether it did.
    pub(crate) async fn resume_if_stopped(&mut self) -> Result<bool, ConversationEnd> {
        if self.status() != Some(SessionStatus::Stopped)
            || stop_reasons::is_out_of_replies(self)
            || stop_reasons::is_out_of_budget(self)
        {
            return Ok(false);
        }
        self.resume(Budget::default()).await?;
        self.advance().await?;
        Ok(true)
    }

    async fn resume(&mut self, budget: Budget) -> Result<(), ConversationEnd> {
        // The old session must be dropped before its lock is free.
        self.close_session();
        yield_to_tasks().await;
        let lock = self.store.lock(SESSION, "a test").await.map_err(RunError::from)?;
        let session = Session::resume(self.parts(lock, budget)).await?;
        self.session = Some(session);
        self.sessions += 1;
        Ok(())
    }

    /// Ends the session as if its process had died; its sensitive values are kept for masking.
    fn close_session(&mut self) {
        if let Some(session) = self.session.take() {
            self.masker = session.masker.clone();
        }
    }

    /// The masker for the sensitive values of the session.
    pub(crate) fn masker(&self) -> &Masker {
        self.session.as_ref().map_or(&self.masker, |session| &session.masker)
    }

    /// The current time, in the format of prompts.
    pub(crate) fn clock_words(&self) -> String {
        let language = self.setting.script.program.templates.language();
        self.services.clock.prompt_time(self.session.as_ref().map_or(0, Session::last_seq), language)
    }

    pub(crate) fn status(&self) -> Option<SessionStatus> {
        self.session.as_ref().map(Session::status)
    }

    /// `ai`: the AI must have sent this message.
    async fn check_reply(&mut self, wording: &TextExpectation) -> Result<(), ConversationEnd> {
        if self.take_match(wording) {
            return Ok(());
        }
        if self.resume_if_stopped().await? && self.take_match(wording) {
            return Ok(());
        }
        Err(stop_reasons::no_match_error(self, wording))
    }

    /// Searches the unchecked messages for a match, and marks it and all messages before it as checked.
    fn take_match(&mut self, wording: &TextExpectation) -> bool {
        let unchecked = |lines: &[TranscriptLine], from: usize| -> Vec<usize> {
            let ai = |(_, line): &(usize, &TranscriptLine)| line.speaker == Speaker::Ai;
            lines.iter().enumerate().skip(from).filter(ai).map(|(at, _)| at).collect()
        };
        let fits = |line: &TranscriptLine| wording.mismatch_in_message(&line.text, &line.action_id).is_none();
        if wording.only_forbids() {
            // It applies to all messages since the last input, checked or not.
            let from = self.lines.iter().rposition(|line| line.speaker == Speaker::User).map_or(0, |at| at + 1);
            return unchecked(&self.lines, from).iter().all(|at| self.lines.get(*at).is_some_and(fits));
        }
        let candidates = unchecked(&self.lines, self.checked);
        let max_candidates = if self.setting.test.strict { 1 } else { usize::MAX };
        let found = candidates.into_iter().take(max_candidates).find(|at| self.lines.get(*at).is_some_and(fits));
        if let Some(at) = found {
            self.checked = at + 1;
        }
        found.is_some()
    }

    /// `user`: sends input of the person.
    pub(crate) async fn send_input(&mut self, text: &str, span: Span) -> Result<(), ConversationEnd> {
        stop_reasons::check_no_unchecked(self, span)?;
        self.resume_if_stopped().await?;
        if self.status() != Some(SessionStatus::WaitingInput) {
            return Err(stop_reasons::unexpected_input_error(self, text, span));
        }
        self.answers += 1;
        if self.answers > self.setting.test.turns {
            let message = msg!("the conversation has more than {} turns", self.setting.test.turns);
            let help = Message::word("to allow more turns, raise `turns:` in the test");
            return Err(self.failure(span, message, Message::default(), Message::default(), Some(help)));
        }
        let since = self.log.count();
        let Some(session) = &mut self.session else { return Ok(()) };
        match session.answer(text, None).await? {
            TakenAnswer::Yes => {}
            TakenAnswer::TooLong => {
                let message = Message::word("the person's answer is longer than the limit for answers");
                return Err(self.failure(span, message, Message::default(), Message::default(), None));
            }
            TakenAnswer::AlreadyUsed | TakenAnswer::Unknown | TakenAnswer::NotAwaited => {
                return Err(stop_reasons::unexpected_input_error(self, text, span));
            }
        }
        self.since = since;
        self.read_lines();
        self.checked = self.lines.len();
        self.advance().await
    }

    pub(crate) fn check_expect(
        &mut self,
        expect: &bcc_lang::script::test::expect::Expect,
        since: usize,
    ) -> Result<(), ConversationEnd> {
        let Some(session) = &self.session else { return Ok(()) };
        let judge_of = Judge {
            file: self.setting.file,
            session,
            log: &self.log,
            lines: &self.lines,
            watch: &self.setting.watch,
            since,
        };
        let failures = judge(expect, &judge_of);
        if failures.is_empty() {
            self.expects_failure |= stop_reasons::expects_failure(expect);
            return Ok(());
        }
        self.failures.extend(failures);
        Err(ConversationEnd::Failed)
    }

    /// `wait`: advances virtual time, and runs the tasks that become due.
    async fn wait(&mut self, time: Duration) -> Result<(), ConversationEnd> {
        let clock = Arc::clone(&self.setting.time);
        let until = clock.now().saturating_add(time);
        while let Some(next) = clock.next_wakeup().filter(|next| *next <= until) {
            clock.advance_to(next);
            self.settle().await?;
        }
        clock.advance_to(until);
        self.settle().await?;
        // What the session waits for may be due now.
        if self.session.as_ref().is_some_and(|session| session.time_left().is_some_and(|left| left.is_zero())) {
            self.since = self.log.count();
            self.advance().await?;
        }
        Ok(())
    }

    async fn restart(&mut self, restart: &Restart) -> Result<(), ConversationEnd> {
        if self.status().is_some_and(SessionStatus::is_final) {
            let status = self.status().map(SessionStatus::name).unwrap_or_default();
            let message = msg!("the session cannot be resumed: it is {status}");
            return Err(self.failure(restart.span, message, Message::default(), Message::default(), None));
        }
        self.close_session();
        yield_to_tasks().await;
        let time = &self.setting.time;
        time.advance_to(time.now().saturating_add(restart.after));
        match self.resume(Budget::of(restart.budget.as_ref())).await {
            Err(ConversationEnd::Broken(reason)) if restart.budget.is_some() => {
                return Err(self.failure(restart.span, reason, Message::default(), Message::default(), None));
            }
            other => other?,
        }
        self.advance().await
    }

    /// The dialogue is over: checks the final expectations.
    fn check_end(&mut self) -> Result<(), ConversationEnd> {
        let test = self.setting.test;
        if let Some(expect) = &test.expect {
            self.check_expect(expect, 0)?;
        }
        stop_reasons::check_end(self)
    }

    pub(crate) fn turns(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.totals().turns)
    }

    pub(crate) fn model_calls(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.totals().model_calls)
    }

    /// The errors and warnings of the models, for the report of a failure.
    pub(crate) fn problems(&self, status: crate::test_runner::result::TestStatus) -> Vec<Message> {
        if status == crate::test_runner::result::TestStatus::Passed {
            return vec![];
        }
        let mut problems = Vec::new();
        for (kind, errors) in [("error", true), ("warning", false)] {
            let codes = self.log.codes(errors, 0).into_iter();
            // The failure itself reports that the test has no reply.
            let other_codes = codes.filter(|(_, message)| !is_no_reply(message));
            problems.extend(
                other_codes.map(|(code, message)| msg!("{kind} {code}: {message}", kind = Message::word(kind))),
            );
        }
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        if more > 0 {
            problems.push(msg!("and {more} more"));
        }
        problems
    }

    pub(crate) fn failure(
        &mut self,
        span: Span,
        message: Message,
        expected: impl Shown,
        found: impl Shown,
        help: Option<Message>,
    ) -> ConversationEnd {
        let line = self.setting.file.line(span.start);
        let line_count = self.lines.len();
        let (expected, found) = (expected.shown(), found.shown());
        self.failures.push(TestFailure {
            span,
            line,
            message,
            expected,
            exact: None,
            found,
            help,
            transcript_lines: line_count,
        });
        ConversationEnd::Failed
    }
}
