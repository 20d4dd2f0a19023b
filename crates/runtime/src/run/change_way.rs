//! Where a session goes after a turn that changed a watched variable.

use crate::program::event::Event;
use crate::program::location::EventLocation;
use bcc_lang::script::route_parser::RouteTarget;

/// Where the session goes after a turn that changed a watched variable.
#[derive(Debug)]
pub(crate) struct ChangeWay {
    /// `insert` and `then` of the route.
    pub(crate) insert: Option<String>,
    pub(crate) then: Option<RouteTarget>,
    /// The frames of the turn: its action, its topic and its phase.
    pub(crate) action: String,
    pub(crate) topic: Option<String>,
    pub(crate) phase: Option<String>,
    /// What is recorded when it is gone, and where.
    pub(crate) event: Box<(EventLocation, Event)>,
}
