//! The services that the host provides to a running session.

use std::sync::Arc;

use crate::program::clock::Clock;
use crate::program::event::Observer;
use crate::program::host_services::HostServices;
use crate::program::models::ModelProviders;
use crate::program::recheck::Recheck;
use crate::program::recorder::Recorder;

/// The models, the clock, the observer and the script of one session.
#[derive(Clone)]
pub struct Services {
    pub models: Arc<dyn ModelProviders>,
    pub clock: Arc<dyn Clock>,
    pub observer: Arc<dyn Observer>,
    /// The script that the session is pinned to, for checking it again with other actions.
    pub recheck: Arc<dyn Recheck>,
    /// Records the exchanges with models; usually not set.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// Whether global variables that the session sets are its own, and not stored for its user.
    pub keeps_globals: bool,
    /// The other services of the host.
    pub host: HostServices,
}
