//! What the outside world gives to a running session.

use std::sync::Arc;

use crate::program::clock::Clock;
use crate::program::event::Observer;
use crate::program::host_services::HostServices;
use crate::program::models::ModelProviders;
use crate::program::recheck::Recheck;
use crate::program::recorder::Recorder;

/// The models, the clock, the reader of events and the script of one session.
#[derive(Clone)]
pub struct Services {
    pub models: Arc<dyn ModelProviders>,
    pub clock: Arc<dyn Clock>,
    pub observer: Arc<dyn Observer>,
    /// The script that the session is pinned to, to be checked again with other actions.
    pub recheck: Arc<dyn Recheck>,
    /// Who writes down what is said to models; nobody, mostly.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// What it may touch beyond models.
    pub outside: HostServices,
}
