use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;
use crate::actions::KINDS;
