//! On a broker that is there: what wakes, whom, and how often.
//!
//! The cases are one test, one after the other: a broker takes seconds to start, and a runner that gives each test its
//! own process would start one for each.

use std::fs;
use std::time::Duration;

use tenure_cluster::rabbitmq_server::{self, RabbitServer};
use tenure_rabbitmq::{Broker, Options};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tracing::Level;

use crate::raw::Raw;
use crate::tls::Proxy;
use crate::{AMPLE, QUIET, connected, driver_threads, eventually, job, lines, still, woken};

/// A broker, and an exchange for one case.
struct Case {
    server: &'static RabbitServer,
    raw: Raw,
    exchange: &'static str,
}

macro_rules! cases {
    ($($case:ident,)*) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn on_a_broker() {
            lines::keep();
            let begin = Instant::now();
            let server = spawn_blocking(rabbitmq_server::shared).await.unwrap();
            println!("the broker was there after {:?}", begin.elapsed());
            $(
                let begin = Instant::now();
                println!("{}", stringify!($case));
                let raw = Raw::connect(&server.url()).await;
                timeout(AMPLE * 2, $case(Case { server, raw, exchange: stringify!($case) })).await.expect(stringify!($case));
                println!("{}: {:?}", stringify!($case), begin.elapsed());
            )*
        }
    };
}

cases! {
    a_message_wakes_once,
    who_only_listens_is_woken,
    what_is_published_wakes,
    every_process_is_woken,
    a_shared_queue_wakes_one_of_them,
    what_is_malformed_wakes_nobody_and_is_not_told,
    duplicates_are_more_wake_ups,
    a_flood_is_few_wake_ups,
    every_clone_waits_for_itself,
    a_wake_up_that_was_not_taken_stays,
    a_wrong_password_is_told_without_it,
    an_exchange_of_another_type_is_told_until_it_is_gone,
    a_queue_that_is_deleted_is_made_again,
    the_whole_way_may_be_encrypted,
    a_broker_that_blocks_publishers_blocks_nobody_here,
    who_closes_or_goes_leaves_nothing_behind,
}

impl Case {
    fn options(&self) -> Options {
        Options { exchange: self.exchange.to_owned(), publish: true, ..Options::new(self.server.url()) }
    }

    async fn broker(&self) -> Broker {
        let broker = Broker::start(self.options()).unwrap();
        connected(&broker).await;
        broker
    }

    async fn say(&self, number: u8) {
        self.raw.send_job(self.exchange, job(number)).await;
    }
}

async fn a_message_wakes_once(case: Case) {
    let broker = case.broker().await;
    case.say(1).await;
    woken(&broker).await;
    still(&broker).await;
    let counts = broker.counts();
    assert_eq!((counts.received, counts.malformed), (1, 0));
    broker.close().await;
}

/// Such a session once gave up listening in the moment it began: it had nothing to publish, and waited for that.
async fn who_only_listens_is_woken(case: Case) {
    let broker = Broker::start(Options { publish: false, ..case.options() }).unwrap();
    connected(&broker).await;
    case.say(1).await;
    woken(&broker).await;
    broker.publish(job(2));
    let counts = broker.counts();
    assert_eq!((counts.received, counts.published, counts.dropped), (1, 0, 0));
    broker.close().await;
}

async fn what_is_published_wakes(case: Case) {
    let (sender, receiver) = (case.broker().await, case.broker().await);
    sender.publish(job(1));
    woken(&receiver).await;
    eventually("counted", || sender.counts().published == 1).await;
    // What waits in the line is published before the end.
    for number in 2..=100 {
        sender.publish(job(number));
    }
    sender.close().await;
    eventually("all came", || receiver.counts().received == 100).await;
    assert_eq!(receiver.counts().malformed, 0);
    receiver.close().await;
}

async fn every_process_is_woken(case: Case) {
    let (one, other) = (case.broker().await, case.broker().await);
    case.say(1).await;
    woken(&one).await;
    woken(&other).await;
    one.close().await;
    other.close().await;
}

async fn a_shared_queue_wakes_one_of_them(case: Case) {
    let shared = || Options { queue: Some("shared".to_owned()), ..case.options() };
    let (one, other) = (Broker::start(shared()).unwrap(), Broker::start(shared()).unwrap());
    connected(&one).await;
    connected(&other).await;
    case.say(1).await;
    tokio::select! {
        () = woken(&one) => still(&other).await,
        () = woken(&other) => still(&one).await,
    }
    assert_eq!(one.counts().received + other.counts().received, 1);
    one.close().await;
    other.close().await;
    // It stays, and what is said meanwhile waits in it.
    case.say(2).await;
    let late = Broker::start(shared()).unwrap();
    eventually("heard", || late.counts().received == 1).await;
    late.close().await;
    case.raw.delete_queue("shared").await;
}

async fn what_is_malformed_wakes_nobody_and_is_not_told(case: Case) {
    let broker = case.broker().await;
    let id = job(1);
    let deep = [vec![b'['; 50_000], vec![b']'; 50_000]].concat();
    let huge = format!("{{\"job_id\":\"{id}\",\"canary\":\"{}\"}}", "x".repeat(1 << 20));
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"canary".to_vec(),
        b"\0\0\0\0".to_vec(),
        b"\xff\xfe{\"job_id\":1}".to_vec(),
        b"{\"job_id\":".to_vec(),
        b"{}".to_vec(),
        b"null".to_vec(),
        b"{\"job_id\":7}".to_vec(),
        b"{\"job_id\":null}".to_vec(),
        b"{\"job_id\":\"canary\"}".to_vec(),
        b"{\"job_id\":\"\\u0000\"}".to_vec(),
        format!("{{\"job_id\":[\"{id}\"]}}").into_bytes(),
        format!("{{\"job\":\"{id}\"}}").into_bytes(),
        format!("[\"{id}\"]").into_bytes(),
        format!("\"{id}\"").into_bytes(),
        format!("{{\"job_id\":\"{id}\"}} {{}}").into_bytes(),
        format!("{{\"job_id\":\"{id}\0\"}}").into_bytes(),
        deep,
        huge.into_bytes(),
    ];
    let number = bodies.len() as u64;
    for body in &bodies {
        case.raw.send(case.exchange, body).await;
    }
    eventually("all came", || broker.counts().received == number).await;
    assert_eq!(broker.counts().malformed, number);
    still(&broker).await;
    case.say(2).await;
    woken(&broker).await;
    assert_eq!((broker.counts().received, broker.counts().malformed), (number + 1, number));
    let leaked = lines::all().into_iter().find(|line| line.text.contains("canary"));
    assert!(leaked.is_none(), "{leaked:?}");
    broker.close().await;
}

async fn duplicates_are_more_wake_ups(case: Case) {
    let broker = case.broker().await;
    for _ in 0..3 {
        case.say(1).await;
        woken(&broker).await;
    }
    assert_eq!((broker.counts().received, broker.counts().malformed), (3, 0));
    broker.close().await;
}

async fn a_flood_is_few_wake_ups(case: Case) {
    let broker = case.broker().await;
    let before = resident_kib();
    let begin = Instant::now();
    let url = case.server.url();
    let exchange = case.exchange;
    let flood = tokio::spawn(async move {
        let raw = Raw::connect(&url).await;
        for _ in 0..50_000 {
            raw.send_job(exchange, job(1)).await;
        }
    });
    let (mut wakes, mut last): (u32, Option<Instant>) = (0, None);
    // To its end and until nothing comes any more.
    loop {
        let finished = flood.is_finished();
        match timeout(QUIET, broker.woken()).await {
            Err(_) if finished => break,
            Err(_) => {}
            Ok(()) => {
                let apart = last.map_or(Duration::MAX, |last| last.elapsed());
                assert!(apart >= Duration::from_millis(9), "apart by {apart:?}");
                last = Some(Instant::now());
                wakes += 1;
            }
        }
    }
    flood.await.unwrap();
    let grown = resident_kib().saturating_sub(before);
    println!("{wakes} wake-ups in {:?}, {grown} KiB more, {:?}", begin.elapsed(), broker.counts());
    assert!(u128::from(wakes) <= begin.elapsed().as_millis() / 10 + 2);
    assert!(broker.counts().received > 1_000, "{broker:?}");
    assert!(grown < 64 * 1024, "{grown} KiB");
    broker.close().await;
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn every_clone_waits_for_itself(case: Case) {
    let broker = case.broker().await;
    let other = broker.clone();
    case.say(1).await;
    woken(&broker).await;
    woken(&other).await;
    still(&broker).await;
    // What was said before is nothing to a new one.
    still(&broker.clone()).await;
    broker.close().await;
}

async fn a_wake_up_that_was_not_taken_stays(case: Case) {
    let broker = case.broker().await;
    let mut said = 0;
    // Until one was dropped while it waited for its turn, as `select!` does; on a slow machine its turn has come.
    loop {
        case.say(1).await;
        said += 1;
        eventually("came", || broker.counts().received == said).await;
        if timeout(Duration::from_micros(1), broker.woken()).await.is_err() {
            break;
        }
    }
    woken(&broker).await;
    still(&broker).await;
    broker.close().await;
}

async fn a_wrong_password_is_told_without_it(case: Case) {
    let port = case.server.port();
    let before = lines::told(Level::WARN, port).len();
    for url in [format!("amqp://guest:canary-4111@127.0.0.1:{port}"), format!("{}/canary-vhost", case.server.url())] {
        let known = lines::told(Level::WARN, port).len();
        let broker = Broker::start(Options::new(url)).unwrap();
        eventually("told", || lines::told(Level::WARN, port).len() == known + 1).await;
        assert!(!broker.is_up());
        broker.close().await;
    }
    let told = lines::told(Level::WARN, port).split_off(before);
    assert!(told[0].contains("refuses us") && told[0].contains("ACCESS_REFUSED"), "{told:?}");
    assert!(told[1].contains("refuses us") && told[1].contains("vhost"), "{told:?}");
    let leaked = lines::all().into_iter().find(|line| line.text.contains("canary-4111"));
    assert!(leaked.is_none(), "{leaked:?}");
}

async fn an_exchange_of_another_type_is_told_until_it_is_gone(case: Case) {
    let port = case.server.port();
    case.raw.declare_fanout(case.exchange).await;
    let before = (lines::told(Level::WARN, port).len(), lines::told(Level::DEBUG, port).len());
    let broker = Broker::start(case.options()).unwrap();
    eventually("tried again", || lines::told(Level::DEBUG, port).len() > before.1).await;
    let told = lines::told(Level::WARN, port).split_off(before.0);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(case.exchange) && told[0].contains("current is 'fanout'"), "{told:?}");
    case.raw.delete_exchange(case.exchange).await;
    connected(&broker).await;
    assert_eq!(broker.counts().reconnects, 0);
    broker.close().await;
}

async fn a_queue_that_is_deleted_is_made_again(case: Case) {
    let broker = Broker::start(Options { queue: Some("deleted".to_owned()), ..case.options() }).unwrap();
    connected(&broker).await;
    case.raw.delete_queue("deleted").await;
    eventually("made again", || broker.counts().reconnects == 1 && broker.is_up()).await;
    woken(&broker).await;
    case.say(1).await;
    woken(&broker).await;
    broker.close().await;
    case.raw.delete_queue("deleted").await;
}

async fn the_whole_way_may_be_encrypted(case: Case) {
    let proxy = Proxy::start(case.server.port()).await;
    let url = format!("amqps://guest:guest@127.0.0.1:{}", proxy.port);
    let options = |ca| Options { url: url.clone(), ca, ..case.options() };
    let broker = Broker::start(options(Some(proxy.ca.clone()))).unwrap();
    connected(&broker).await;
    broker.publish(job(1));
    woken(&broker).await;
    broker.close().await;
    let other = Proxy::start(case.server.port()).await;
    let distrusts = Broker::start(options(Some(other.ca.clone()))).unwrap();
    eventually("told", || lines::told(Level::WARN, proxy.port).len() == 1).await;
    assert!(
        lines::told(Level::WARN, proxy.port)[0].contains("certificate"),
        "{:?}",
        lines::told(Level::WARN, proxy.port)
    );
    distrusts.close().await;
}

async fn a_broker_that_blocks_publishers_blocks_nobody_here(case: Case) {
    let (broker, server) = (case.broker().await, case.server);
    let control = |arguments: &'static [&'static str]| async move {
        spawn_blocking(move || server.control(arguments).unwrap()).await.unwrap()
    };
    control(&["set_vm_memory_high_watermark", "0.0000001"]).await;
    // The first goes out and the broker answers that it is the last; then the line fills up. A broker that reads would
    // take ten times as many.
    eventually("full", || {
        (0..10).for_each(|number| broker.publish(job(number)));
        broker.counts().dropped > 0
    })
    .await;
    assert!(broker.is_up());
    let blocked = broker.counts();
    control(&["set_vm_memory_high_watermark", "0.6"]).await;
    eventually("goes on", || broker.counts().published >= blocked.published + 1_000).await;
    eventually("wakes", || broker.counts().received > blocked.received).await;
    assert_eq!(broker.counts().reconnects, 0);
    broker.close().await;
}

async fn who_closes_or_goes_leaves_nothing_behind(case: Case) {
    let (closes, goes) = (case.broker().await, case.broker().await);
    let listed = || async { spawn_blocking(|| rabbitmq_server::shared().control(&["list_connections", "name"])).await };
    let open = |text: &str| text.lines().filter(|line| line.contains("->")).count();
    let before = open(&listed().await.unwrap().unwrap());
    assert!(before >= 4, "two each: {before}");
    closes.close().await;
    drop(goes);
    let since = Instant::now();
    loop {
        let now = open(&listed().await.unwrap().unwrap());
        if now + 4 == before {
            break;
        }
        assert!(since.elapsed() < AMPLE, "{now} of {before} connections are still there");
    }
    // The case's own client has one.
    eventually("the driver's threads are gone", || driver_threads() == 1).await;
}
