//! The limit of the requests of each client.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;

/// Limits the requests of each client.
pub(crate) type ClientLimiter = RateLimiter<String, DefaultKeyedStateStore<String>, DefaultClock>;

/// How often clients are forgotten.
pub(crate) const FORGET: Duration = Duration::from_secs(60);

/// The client at an address. With IPv6, that is its network: each client has as many addresses in it as it likes.
pub(crate) fn client_at(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// Forgets, `every` so often, clients that may send as much as new ones.
pub(crate) async fn forget_clients(limiter: &ClientLimiter, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        limiter.retain_recent();
        limiter.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use governor::Quota;

    use super::*;

    #[tokio::test]
    async fn a_client_that_sends_nothing_more_is_forgotten() {
        let limiter = RateLimiter::keyed(Quota::per_second(NonZeroU32::new(1_000).unwrap()));
        for number in 0..1_000 {
            limiter.check_key(&number.to_string()).unwrap();
        }
        let forgotten = async {
            while !limiter.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = forgotten => {}
            () = forget_clients(&limiter, Duration::from_millis(1)) => {}
        }
        // One that has used up its requests is not.
        let slow = RateLimiter::keyed(Quota::per_hour(NonZeroU32::MIN));
        slow.check_key(&"client".to_owned()).unwrap();
        let rounds = async {
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = rounds => {}
            () = forget_clients(&slow, Duration::from_millis(1)) => {}
        }
        assert!(slow.check_key(&"client".to_owned()).is_err());
    }

    #[test]
    fn a_client_is_known_by_its_address_or_its_network() {
        let at = |address: &str| client_at(address.parse().unwrap());
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2:ffff::1"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
    }
}
