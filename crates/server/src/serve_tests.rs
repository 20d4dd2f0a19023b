//! The limits of connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bcc_engine::engine::Engine;
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_store::memory::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::access::AccessRules;
use crate::serve::Server;
use crate::settings::{BehaviorSettings, ChatSettings, ServeSettings, ServerLimits};

/// A server for an empty project.
async fn server(folder: &tempfile::TempDir, limits: ServerLimits) -> Server {
    let environment = Environment::default();
    let project = Project::of(folder.path(), None, false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let settings = ServeSettings {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        access: AccessRules::default(),
        limits,
        chat: ChatSettings::default(),
        behavior: BehaviorSettings::default(),
        model: None,
        talk_request: None,
        continue_trace: None,
    };
    Server::bind(engine, settings).await.unwrap()
}

/// Each piece arrives in time, but never the end.
#[tokio::test]
async fn a_body_that_arrives_in_small_pieces_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ServerLimits { request_time: Duration::from_millis(300), ..ServerLimits::default() };
    let server = server(&folder, limits).await;
    let address = server.address().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let head = "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    write.write_all(head.as_bytes()).await.unwrap();
    let pieces = async {
        loop {
            write.write_all(b" ").await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut reply = [0_u8; 4_000];
    let length = tokio::select! {
        read = read.read(&mut reply) => read.unwrap(),
        () = pieces => unreachable!("they never end"),
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("there is no response"),
    };
    let reply = String::from_utf8_lossy(reply.get(..length).unwrap());
    assert!(reply.starts_with("HTTP/1.1 408") && reply.contains("the body did not arrive in time"), "{reply}");
    drop((read, write, stop));
    assert!(running.await.unwrap());
}
