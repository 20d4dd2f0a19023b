//! Looks up the addresses of hosts, each on its own thread: a thread that cannot be started is an error. The pool of threads of
//! the runtime, which is used otherwise, panics.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::oneshot;

pub(crate) struct HostLookup;

impl Resolve for HostLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (send, receive) = oneshot::channel();
        let look_up = move || {
            // The client sets the port.
            let found = (name.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>);
            // If the request was canceled, nothing waits for the result.
            drop(send.send(found));
        };
        let started = std::thread::Builder::new().name("resolver".to_owned()).spawn(look_up);
        Box::pin(async move {
            started?;
            let found = receive.await.map_err(|_| io::Error::from(io::ErrorKind::Interrupted))??;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
