//! Tests of costs and rate limits, in virtual time.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::model::message::{ChatMessage, Role};
use crate::model::provider::{NoLiveOutput, RetryLimiter};
use crate::providers::rate_limiter::RateLimits;

struct Slow {
    delay: Duration,
    result: Result<(u64, u64), ModelError>,
    retries: u32,
}

#[async_trait]
impl Provider for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn complete(&self, _request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        sleep(self.delay).await;
        let (tokens_in, tokens_out) = self.result.clone()?;
        Ok(ModelReply {
            tokens_in: Some(tokens_in),
            tokens_out: Some(tokens_out),
            attempts: 1,
            ..ModelReply::default()
        })
    }

    async fn complete_with_retries(
        &self,
        request: &ModelRequest,
        live: &mut dyn LiveObserver,
        limiter: &dyn RetryLimiter,
    ) -> Result<ModelReply, ModelError> {
        for _ in 0..self.retries {
            limiter.admit_retry().await;
        }
        self.complete(request, live).await
    }
}

fn request(characters: usize) -> ModelRequest {
    let messages = vec![ChatMessage { role: Role::User, content: "字".repeat(characters) }];
    ModelRequest { messages, max_tokens: Some(100), ..ModelRequest::default() }
}

fn configured(result: Result<(u64, u64), ModelError>, limits: RateLimits, price: Option<Price>) -> ConfiguredModel {
    retrying(0, result, limits, price)
}

fn retrying(
    retries: u32,
    result: Result<(u64, u64), ModelError>,
    limits: RateLimits,
    price: Option<Price>,
) -> ConfiguredModel {
    ConfiguredModel {
        provider: Arc::new(Slow { delay: Duration::from_secs(1), result, retries }),
        rate_limiter: Some(Arc::new(RateLimiter::new(limits))),
        price,
        reply_policy: ReplyPolicy { repair: true, reask: 2 },
        max_tokens: None,
    }
}

#[test]
fn the_cost_is_computed_from_the_tokens_of_prompt_and_reply() {
    let price = |cached, per| Price { input: 0.5, output: 1.5, cached, currency: "USD".into(), per };
    let reply = |tokens: (u64, u64), tokens_cached| ModelReply {
        tokens_in: Some(tokens.0),
        tokens_out: Some(tokens.1),
        tokens_cached,
        ..ModelReply::default()
    };
    let table = [
        (price(None, 1_000_000), reply((1_000_000, 2_000_000), None), 3.5),
        (price(None, 1_000), reply((200, 100), None), 0.25),
        (price(Some(0.1), 1_000), reply((200, 100), Some(100)), 0.21),
        (price(None, 1_000), reply((200, 100), Some(100)), 0.25),
        // More cached tokens than tokens of the prompt are ignored.
        (price(Some(0.0), 1_000), reply((200, 0), Some(900)), 0.0),
        (price(None, 1), reply((0, 0), None), 0.0),
    ];
    for (price, reply, expected) in table {
        let cost = price.cost(&reply).unwrap();
        assert!((cost.amount - expected).abs() < 1e-12, "{cost:?} is not {expected}");
        assert_eq!(cost.currency, "USD");
    }
    assert_eq!(price(None, 1).cost(&ModelReply::default()), None, "without a model there is no price");
}

#[tokio::test(start_paused = true)]
async fn a_reply_has_its_cost_and_the_model_its_reply_policy() {
    let price = Price { input: 2.0, output: 8.0, cached: None, currency: "CNY".into(), per: 1_000 };
    let model = configured(Ok((500, 250)), RateLimits::default(), Some(price));
    assert_eq!(model.reply_policy(), ReplyPolicy { repair: true, reask: 2 });
    let reply = model.complete(&request(3), &mut NoLiveOutput).await.unwrap();
    assert_eq!(reply.cost, Some(Cost { amount: 3.0, currency: "CNY".into() }));
    let free = configured(Ok((500, 250)), RateLimits::default(), None);
    assert_eq!(free.complete(&request(3), &mut NoLiveOutput).await.unwrap().cost, None);
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_the_concurrency_and_rate_limits() {
    let limits = RateLimits { concurrency: Some(1), requests_per_minute: Some(2), tokens_per_minute: None };
    let model = configured(Ok((1, 1)), limits, None);
    let start = Instant::now();
    let call = || async {
        model.complete(&request(3), &mut NoLiveOutput).await.unwrap();
        start.elapsed().as_secs()
    };
    assert_eq!(tokio::join!(call(), call(), call()), (1, 2, 61));
}

#[tokio::test(start_paused = true)]
async fn a_running_background_call_gives_the_only_slot_to_a_call_that_somebody_waits_for() {
    let limits = RateLimits { concurrency: Some(1), ..RateLimits::default() };
    let slow = Slow { delay: Duration::from_secs(10), result: Ok((1, 1)), retries: 0 };
    let model = ConfiguredModel { provider: Arc::new(slow), ..configured(Ok((1, 1)), limits, None) };
    let start = Instant::now();
    let call = |purpose, begins: u64| {
        let model = &model;
        async move {
            sleep(Duration::from_secs(begins)).await;
            let mut request = request(3);
            request.task.purpose = purpose;
            model.complete(&request, &mut NoLiveOutput).await.unwrap();
            start.elapsed().as_secs()
        }
    };
    let calls = tokio::join!(call(Purpose::Monitor, 0), call(Purpose::Action, 4), call(Purpose::Orchestrator, 5));
    assert_eq!(calls, (24, 14, 34), "the monitor is asked again when nobody waits");
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_the_rate_limit_and_end_with_their_call() {
    let limits = RateLimits { concurrency: Some(1), requests_per_minute: Some(2), tokens_per_minute: None };
    let model = retrying(3, Ok((1, 1)), limits, None);
    let start = Instant::now();
    let (first, mut live) = (request(3), NoLiveOutput);
    let call = model.complete(&first, &mut live);
    assert!(timeout(Duration::from_secs(30), call).await.is_err(), "the third request has to wait");
    model.complete(&request(3), &mut NoLiveOutput).await.unwrap();
    // The first two requests count until 60 s, the next two until 120 s.
    assert_eq!(start.elapsed().as_secs(), 121);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_releases_its_tokens_and_a_truncated_one_does_not() {
    let rejected =
        ModelError::Http { host: "h".into(), status: 429, message: String::new(), retry_after: None, attempts: 1 };
    let cut = ModelError::CutOff { host: "h".into(), attempts: 1 };
    for (error, waits) in [(rejected, false), (cut, true)] {
        let limits = RateLimits { tokens_per_minute: Some(1_000), ..RateLimits::default() };
        let model = configured(Err(error), limits, None);
        let start = Instant::now();
        for _ in 0..2 {
            model.complete(&request(600), &mut NoLiveOutput).await.unwrap_err();
        }
        assert_eq!(start.elapsed() > Duration::from_secs(60), waits, "{:?}", start.elapsed());
    }
}
