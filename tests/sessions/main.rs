//! Tests of whole sessions in process: messages, storage, resume and failures, with models, monitors and effects of every kind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod any_script;
mod arriving_decisions;
mod background;
mod conversations;
mod due_clock;
mod effects;
mod handles;
mod held_commits;
mod leading_persons;
mod logs;
mod mailbox;
mod model_faults;
mod monitors;
mod notebook;
mod orchestration;
mod plan_tasks;
mod planning;
mod prompt_sizes;
mod races;
mod routes;
mod skill_files;
mod taking_back;
mod tools;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/checking.rs"]
mod checking;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/conversation.rs"]
mod conversation;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/crashing_store.rs"]
mod crashing_store;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/faulty.rs"]
mod faulty;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/test_session.rs"]
mod test_session;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/watching.rs"]
mod watching;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Sets the working directory to the root of the repository.
fn at_root() {
    std::env::set_current_dir(ROOT).unwrap();
}
