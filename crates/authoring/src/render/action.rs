//! Renders the prompt of an action of a script: the action runs its turns with models that only capture their requests.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use bcc_lang::value::exact::ExactValue;

use crate::render::background;
use crate::render::capturing::{CapturedPrompt, CapturingModels, IgnoreEvents, NoPrompt, answer_placeholder};
use crate::render::find_action::{FoundAction, actions, find, listed};
use crate::render::missing_names;
use crate::render::prompt::Prompt;
use crate::render::request::RenderRequest;
use crate::render::variables::{is_empty_list, masker, scopes};
use crate::templates::find::{Typed, typed};
use bcc_check::templates::unused::name_and_version;
use bcc_engine::clock::{FixedClock, SystemClock};
use bcc_engine::engine::RunRequest;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_engine::recheck::PinnedScript;
use bcc_lang::template::loaded::DEFAULT_PREFIX;
use bcc_lang::template::missing::Marks;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::Scopes;
use bcc_runtime::actions::KINDS;
use bcc_runtime::effects::behaviors::ServerError;
use bcc_runtime::notebook::kernel::contract::KernelError;
use bcc_runtime::notebook::state::NotebookState;
use bcc_runtime::plan::access::PlanAccess;
use bcc_runtime::program::cell_reader::NoCells;
use bcc_runtime::program::clock::Clock;
use bcc_runtime::program::evaluation::NULL_VALUE;
use bcc_runtime::program::event::{Event, Speaker};
use bcc_runtime::program::flow::{ActionError, Flow, WaitReason};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::services::Services;
use bcc_runtime::program::transcript::{RecentTranscript, TranscriptEntry};
use bcc_runtime::program::turn::{Turn, TurnResources};

/// The maximum number of turns until an action reaches a later prompt.
const MAX_TURNS: u32 = 8;

/// An action that is about to call a model, with its environment.
pub(crate) struct ActionSetup<'p> {
    pub(crate) program: &'p Arc<Program>,
    pub(crate) found: FoundAction<'p>,
    pub(crate) services: Services,
    pub(crate) capturing_models: CapturingModels,
    pub(crate) scopes: Scopes,
    pub(crate) recent: RecentTranscript,
    /// The state that the action stores between turns.
    state: ExactValue,
    /// The notebook after the previous turns.
    notebook: NotebookState,
    calls: u32,
    /// What the last turn reported of operations that are null or failed.
    warnings: Vec<Message>,
}

/// Renders the prompt that the action of `script` would send.
/// Errors: `Invalid` if the script or its templates have errors; `Usage` if there is no such action, round or variable,
/// or if the action calls no model there; `Failed` if the prompt cannot be rendered.
pub async fn prompt_of_action(
    project: &Project,
    request: &RenderRequest,
    script: &Path,
    action: &str,
) -> Result<Prompt, EngineError> {
    let marks = Arc::new(Marks::default());
    let run = RunRequest { file: script.to_path_buf(), scheme: request.scheme.clone(), ..RunRequest::default() };
    let (pinned, program) = LoadedProgram::with_marks(project, &run, Some(&marks))?.into_parts();
    let program = Arc::new(program);
    let found = find(&program, action)?;
    let named = request.name.as_deref().map(typed).transpose()?;
    if let Some(name) = request.name.as_deref().filter(|name| name.starts_with(DEFAULT_PREFIX)) {
        let message = msg!("`{name}` skips the scheme, but an action uses the templates of its scheme");
        return Err(EngineError::usage(message).with_help("use `--scheme default` to see its prompt without a scheme"));
    }
    let capturing_models = CapturingModels::default();
    let services = Services {
        models: Arc::new(capturing_models.clone()),
        clock: clock(request.clock.as_deref())?,
        observer: Arc::new(IgnoreEvents),
        recheck: Arc::new(PinnedScript::new(pinned)),
        recorder: None,
        keeps_globals: false,
        host: HostServices { servers: Arc::new(NoPrompt), ..HostServices::default() },
    };
    let scopes = scopes(&program, &found, request.variables_file.as_deref(), &request.variables)?;
    let recent = program.recent_transcript();
    let empty_list = is_empty_list(&program, &found, &scopes);
    let (state, notebook, calls, warnings) = (ExactValue::default(), NotebookState::default(), 0, Vec::new());
    let mut setup = ActionSetup {
        program: &program,
        found,
        services,
        capturing_models,
        scopes,
        recent,
        state,
        notebook,
        calls,
        warnings,
    };
    let captured = match named.as_ref().map(|typed| typed.name).filter(|name| *name != found.step.kind) {
        None => setup.prompt_of_round(request.round, &request.answers, &marks).await,
        Some(name) => background::prompt(&mut setup, name, request, &marks).await,
    };
    let masker = masker(&setup.scopes);
    let captured = captured.map_err(|error| redact_error(error, &masker, &marks))?;
    let loaded = program.templates.last_rendered(&marks).and_then(|number| program.templates.files().get(number));
    let loaded = loaded.ok_or_else(|| EngineError::failed("no template was rendered"))?;
    if let Some(typed) = &named {
        check_template_name(typed, loaded.name(), action)?;
    }
    let mut prompt = Prompt::from_captured(captured, loaded, &masker);
    prompt.action = Some((found.step.id.clone(), found.step.kind.to_owned()));
    prompt.notes = notes(&setup);
    prompt.warnings = std::mem::take(&mut setup.warnings);
    if let Some(each) = found.topic.for_each.as_ref().filter(|_| empty_list) {
        let (id, topic, name) = (&found.step.id, &found.topic.id, &each.element);
        prompt.notes.push(msg!(
            "the list of the topic `{topic}` is empty here, so `{id}` would not run; set the list or `{name}` itself with `--var`"
        ));
    }
    missing_names::note(&mut prompt, &program.templates, &marks);
    Ok(prompt)
}

/// Rejects the name of a template that was not used for the prompt.
fn check_template_name(typed: &Typed<'_>, file: &str, action: &str) -> Result<(), EngineError> {
    let Some(version) = typed.version else { return Ok(()) };
    let name = format!("{}_v{version}.md", typed.name);
    if file == name {
        return Ok(());
    }
    Err(EngineError::usage(msg!("`{action}` uses the template `{file}`, not `{name}`")).with_help(
        "the action selects the template (`version` in its config); without `--script` and `--action`, a template is rendered on its own",
    ))
}

/// Masks sensitive values in an error, and adds the possible cause.
fn redact_error(error: EngineError, masker: &Masker, marks: &Marks) -> EngineError {
    let shown = |mut message: Message| {
        message.change_texts(&mut |text| *text = masker.text(text));
        message
    };
    match error {
        EngineError::Failed { message, help } => EngineError::Failed {
            message: shown(missing_names::with_unknown_names(message, marks)),
            help: help.map(shown),
        },
        EngineError::Usage { message, help } => EngineError::Usage { message: shown(message), help: help.map(shown) },
        EngineError::Ended { message, help } => EngineError::Ended { message: shown(message), help: help.map(shown) },
        other @ (EngineError::Invalid(_)
        | EngineError::Held { .. }
        | EngineError::StoreUnavailable { .. }
        | EngineError::StoreNewer { .. }
        | EngineError::StoreGone { .. }) => other,
    }
}

fn notes(setup: &ActionSetup<'_>) -> Vec<Message> {
    let FoundAction { step, skill, topic, .. } = setup.found;
    let mut notes = Vec::new();
    if let Some(skill) = skill {
        notes.push(msg!(
            "`{}` is in the skill `{}`: the goals are those of the topic `{}`, and the inputs are set with `--var`",
            step.id,
            skill.id,
            topic.id
        ));
    }
    let first = actions(setup.program).first().is_some_and(|first| first.step.id == step.id);
    if !first {
        notes.push(msg!("the conversation before `{}` is not known here: it starts with this action", step.id));
    }
    if step.condition.is_some() {
        notes.push(msg!("whether `{}` would run at all is not checked: it has a `condition`", step.id));
    }
    notes
}

fn clock(start: Option<&str>) -> Result<Arc<dyn Clock>, EngineError> {
    let Some(start) = start else { return Ok(Arc::new(SystemClock::new())) };
    let moment = start.parse::<jiff::Timestamp>().map_err(|_| {
        EngineError::usage(msg!("`--clock {start}` is not a valid time"))
            .with_help("write a time such as 2026-11-21T20:00:00Z")
    })?;
    Ok(Arc::new(FixedClock::new(moment)))
}

impl ActionSetup<'_> {
    /// The model call of round `round`: the opening, or the call that evaluates the answer of this round.
    pub(crate) async fn prompt_of_round(
        &mut self,
        round: u32,
        answers: &[String],
        marks: &Marks,
    ) -> Result<CapturedPrompt, EngineError> {
        let id = &self.found.step.id;
        let last_round = round.max(1);
        if answers.len() > last_round as usize {
            return Err(EngineError::usage(msg!("{} answers are too many for round {last_round}", answers.len()))
                .with_help(
                    "the last `--answer` is for the requested round, the one before it for the previous round",
                ));
        }
        let flow = self.turn(None, marks).await?;
        let opening = self.capturing_models.take().pop();
        if last_round == 1 && answers.is_empty() {
            return opening.ok_or_else(|| self.no_prompt_error(&flow));
        }
        let mut flow = flow;
        for number in 1..=last_round {
            if flow != Flow::Wait(WaitReason::Input) {
                let what = msg!("`{id}` does not wait for an answer in round {number}, so there is no such call");
                let help = if number == 1 {
                    msg!("omit `--round` and `--answer`")
                } else {
                    msg!("it has at most {} rounds (`max_rounds`)", number - 1)
                };
                return Err(EngineError::usage(what).with_help(help));
            }
            // The last given answer belongs to the last round.
            let given = (number as usize + answers.len()).checked_sub(last_round as usize + 1);
            let answer =
                given.and_then(|index| answers.get(index)).cloned().unwrap_or_else(|| answer_placeholder(number));
            self.recent.push(TranscriptEntry { speaker: Speaker::User, text: answer.clone() });
            flow = self.turn(Some(&answer), marks).await?;
            let captured = self.capturing_models.take().pop();
            if number == last_round {
                return captured.ok_or_else(|| {
                    EngineError::usage(msg!("`{id}` accepts any answer, and asks no model about it")).with_help(
                        "answers are judged if `max_rounds` is 2 or more; omit `--answer` to see the opening",
                    )
                });
            }
        }
        Err(EngineError::failed(msg!("`{id}` asked no model")))
    }

    /// The model call with the template `name`, of an action that uses several templates in consecutive turns without
    /// waiting for input.
    pub(crate) async fn prompt_with_template(
        &mut self,
        name: &str,
        marks: &Marks,
    ) -> Result<CapturedPrompt, EngineError> {
        for _ in 0..MAX_TURNS {
            let flow = self.turn(None, marks).await?;
            let made = self.program.templates.last_rendered(marks);
            let made = made.and_then(|number| self.program.templates.files().get(number));
            let made = made.and_then(|file| name_and_version(file.name()));
            if let Some(captured) = self.capturing_models.take().pop()
                && made.is_some_and(|(made, _)| made == name)
            {
                return Ok(captured);
            }
            if flow != Flow::Onward {
                break;
            }
        }
        let id = &self.found.step.id;
        Err(EngineError::usage(msg!("with this configuration, `{id}` does not use the template `{name}`"))
            .with_help("omit NAME to see what it uses"))
    }

    /// Runs one turn. Its messages are added to the transcript.
    async fn turn(&mut self, answer: Option<&str>, marks: &Marks) -> Result<Flow, EngineError> {
        marks.clear();
        let FoundAction { phase, topic, step, .. } = self.found;
        let path = format!("{}/{}", topic.id, step.id);
        let place = EventLocation {
            phase_id: Some(phase.id.clone()),
            topic_id: Some(topic.id.clone()),
            action_id: Some(step.id.clone()),
            round: None,
            path,
        };
        let resources = TurnResources {
            program: self.program,
            phase,
            topic,
            place: &place,
            session_id: "render",
            kind: step.kind,
            state: &self.state,
            answer,
            entered: None,
            recent: &self.recent,
            services: &self.services,
            plans: &PlanAccess::in_memory(),
            reasons_with_route: &[],
            resumed: false,
            advice: None,
            max_rounds: None,
            calls_before: self.calls,
            last_seq: 0,
            branch: "",
            notebook: &self.notebook,
            cells: &NoCells,
            masker: &masker(&self.scopes),
            effect: None,
            effect_is_due: false,
            decision: None,
            push_backs: 0,
            is_in_cleanup: false,
            on_interrupted: step.on_interrupted,
            options: &step.options,
        };
        let turn = Turn::new(resources, self.scopes.clone());
        let flow = step.action.turn(&turn).await;
        let work = turn.into_work();
        self.calls += work.calls;
        if let Some(state) = work.state {
            self.state = state;
        }
        if let Some(notebook) = work.notebook {
            self.notebook = notebook;
        }
        self.warnings.clear();
        for (_, event) in work.events {
            match event {
                Event::Message { role: Speaker::Ai, text, .. } => {
                    self.recent.push(TranscriptEntry { speaker: Speaker::Ai, text });
                }
                Event::Warning { code: NULL_VALUE, message, .. } => self.warnings.push(message),
                _ => {}
            }
        }
        flow.map_err(|error| match error {
            ActionError::Model(error) => EngineError::failed(error.to_message()),
            ActionError::Failed { message, help, .. }
            | ActionError::Unusable { message, help }
            | ActionError::Prompt { message, help }
            | ActionError::Source(ServerError { message, help, .. })
            | ActionError::Kernel(KernelError { message, help, .. }) => {
                let failed = EngineError::failed(message);
                match help {
                    Some(help) => failed.with_help(help),
                    None => failed,
                }
            }
        })
    }

    /// The error for an action whose opening calls no model.
    fn no_prompt_error(&self, flow: &Flow) -> EngineError {
        let FoundAction { step, .. } = self.found;
        let id = &step.id;
        if *flow == Flow::Wait(WaitReason::Input) {
            return EngineError::usage(msg!(
                "`{id}` starts with its author's text (`delivery: verbatim`): no model is asked"
            ))
            .with_help("`--answer TEXT` shows the call that judges the answer to it");
        }
        if KINDS.iter().any(|known| known.name() == step.kind && !known.asks_first()) {
            return EngineError::usage(msg!(
                "`{id}` asks a model only after its code has failed, and only with `auto_debug: true`: before that, there is no prompt"
            ))
            .with_help(msg!(
                "`bcc-script templates render {}` shows only the template; with `--session ID` instead of `--script`, it shows what was sent in a stored session",
                step.kind
            ));
        }
        let nested: Vec<&str> =
            step.action.blocks().into_iter().flat_map(|steps| steps.iter()).map(|step| step.id.as_str()).collect();
        let error =
            EngineError::usage(msg!("`{id}` is of type `{}` and asks no model with this configuration", step.kind));
        if !nested.is_empty() {
            return error.with_help(msg!("it contains the actions {}", listed(&nested)));
        }
        let all = actions(self.program);
        let asks = |kind: &str| KINDS.iter().any(|known| known.name() == kind && known.asks());
        // An action that asks nothing is refused in the same way.
        let can_ask = |found: &&FoundAction<'_>| {
            asks(found.step.kind) && found.step.action.asks_model() && found.step.id != self.found.step.id
        };
        let asking: Vec<&str> = all.iter().filter(can_ask).map(|found| found.step.id.as_str()).collect();
        if asking.is_empty() {
            error
        } else {
            error.with_help(msg!("actions that can ask a model are {}", listed(&asking)))
        }
    }
}
