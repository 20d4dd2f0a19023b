//! `run --web`: a conversation in the browser of this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_engine::store_access::store_place;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::run::head::SessionStatus;
use bcc_server::access::AccessRules;
use bcc_server::serve::Server;
use bcc_server::settings::{BehaviorSettings, ChatSettings, ServeSettings, ServerLimits};
use bcc_server::talk::terms::NewLink;
use bcc_store::contract::Store;
use bcc_tools::project_tools::ConfiguredTools;

use crate::cli::browser;
use crate::cli::drive::{ResumeHint, interrupted_early_notice};
use crate::cli::exit::Exit;
use crate::cli::print::print_translated;
use crate::cli::report;
use crate::cli::run::{RunArgs, hint_of, parse_budget, request_of};
use crate::cli::signals::Signals;

/// How often it is looked at whether the conversation has ended.
const LOOK: Duration = Duration::from_millis(300);

/// How long the server stays after the end of the conversation, so that the page can show the end and load the copy.
const STAY: Duration = Duration::from_secs(3);

pub async fn run_in_browser(options: RunArgs, environment: Environment) -> Result<Exit, EngineError> {
    let project = Project::of(&options.file, options.project.as_deref(), options.trust, &environment)?;
    let request = request_of(&options, &environment)?;
    let budget = parse_budget(&options.budget)?;
    let place = store_place(&project, &environment, options.store.as_deref());
    let hint = ResumeHint { trust: options.trust, ..hint_of(&project, &place, &environment) };
    // What is wrong with the script is said here, and not on the page.
    let loaded = LoadedProgram::of(&project, &request)?;
    if loaded.is_state_file {
        return Err(EngineError::usage("`--web` is for conversations, not for workflow state files"));
    }
    loaded.check_permissions(&project, &environment)?;
    report::warnings(loaded.diagnostics());
    let script = options.file.display().to_string();
    let engine = Engine::with_shared_store(project, environment.clone(), options.store.as_deref())?
        .with_budget(budget)
        .with_tools(Arc::new(ConfiguredTools));
    let mut signals = Signals::new(interrupted_early_notice())?;
    signals.set_grace(ServerLimits::default().end_time + ServerLimits::END_MARGIN);
    let (server, address) = bind(&engine, request).await?;
    let link = NewLink::for_one_talk(&engine, &loaded.program, script).await;
    let link = link
        .map_err(|problem| EngineError::failed(msg!("the conversation cannot begin: {why}", why = problem.detail())))?;
    let url = format!("http://{address}{}", link.path);
    print_translated(&msg!("the conversation is at {url}"))?;
    if !browser::open(&url, &environment) {
        report::note(&Message::word("no browser could be opened; open the address yourself"));
    }
    let store = Arc::clone(engine.store());
    let stop = {
        let (link, store, hint) = (link.row.id.clone(), Arc::clone(&store), hint.clone());
        async move {
            let ended = async {
                until_ended(store.as_ref(), &link).await;
                tokio::time::sleep(STAY).await;
            };
            let is_interrupted = tokio::select! {
                () = signals.any() => true,
                () = ended => false,
            };
            if is_interrupted {
                signals.announce();
                report::note(&interrupted(begun(store.as_ref(), &link).await, &hint));
            }
        }
    };
    server.run(stop).await;
    // Nothing serves it any more.
    store.revoke_link(&link.row.id, &stamp(now())).await?;
    Ok(exit(begun(store.as_ref(), &link.row.id).await, &hint))
}

/// The server of the page alone, on a free port of this machine.
async fn bind(engine: &Engine, request: RunRequest) -> Result<(Server, SocketAddr), EngineError> {
    let settings = ServeSettings {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        access: AccessRules::default(),
        limits: ServerLimits::default(),
        chat: ChatSettings::default(),
        behavior: BehaviorSettings::default(),
        model: None,
        talk_request: Some(request),
        continue_trace: None,
    };
    let failed = |error: std::io::Error| {
        EngineError::failed(msg!("the page cannot be served: {error}", error = error.to_string()))
    };
    let server = Server::bind(engine.clone(), settings).await.map_err(failed)?;
    let address = server.address().map_err(failed)?;
    Ok((server, address))
}

/// Returns when the conversation has ended, or waits for somebody who does not decide on the page.
async fn until_ended(store: &dyn Store, link: &str) {
    loop {
        tokio::time::sleep(LOOK).await;
        let status = begun(store, link).await.map(|(_, status)| status);
        if status.is_some_and(|status| status.is_final() || status == SessionStatus::WaitingApproval) {
            return;
        }
    }
}

/// The session of the conversation, and how it stands. None if it has not begun, or the store cannot be read at the moment.
async fn begun(store: &dyn Store, link: &str) -> Option<(String, SessionStatus)> {
    let talk = store.talks(link).await.ok()?.into_iter().next()?;
    let row = store.session(&talk.session).await.ok()??;
    Some((row.id, SessionStatus::parse(&row.status)?))
}

fn interrupted(begun: Option<(String, SessionStatus)>, hint: &ResumeHint) -> Message {
    match begun {
        Some((session, _)) => {
            let resume = hint.command(&session);
            msg!("\ninterrupted; nothing is lost. Resume with: {resume}")
        }
        None => interrupted_early_notice(),
    }
}

/// The exit code for how the conversation stands, and a note for the person.
fn exit(begun: Option<(String, SessionStatus)>, hint: &ResumeHint) -> Exit {
    let Some((session, status)) = begun else { return Exit::Interrupted };
    match status {
        SessionStatus::Completed => {
            report::note(&msg!("── session {} is complete ──", session));
            Exit::Done
        }
        SessionStatus::Failed => {
            let show = hint.show_command(&session);
            report::note(&msg!("the session has failed. Show the conversation with: {show}"));
            Exit::Failed
        }
        SessionStatus::Cancelled => {
            report::note(&msg!("── session {} is cancelled ──", session));
            Exit::Ended
        }
        SessionStatus::WaitingApproval => {
            let resume = hint.command(&session);
            report::note(&msg!("saved; the session waits for a decision. Resume with: {resume}"));
            Exit::Waiting
        }
        SessionStatus::Running | SessionStatus::Stopped | SessionStatus::WaitingInput | SessionStatus::WaitingTime => {
            Exit::Interrupted
        }
    }
}
