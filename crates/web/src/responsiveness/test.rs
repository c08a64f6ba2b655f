//! The test: the configuration, the idle path, and the loaded phases.

use core::time::Duration;
use std::sync::Arc;

use linerate_engine::load::http::{HttpLoadRecord, HttpPhaseSamples, HttpTestEnd};
use linerate_engine::load::{LoadEvent, LoadFigures, LoadTestOptions, LoadTestOutcome};
use linerate_engine::tls::{ServerTrust, TlsClientOptions, https};
use linerate_model::diagnosis::Confidence;
use linerate_model::load::PhaseKind;
use linerate_sys::clock;
use linerate_sys::net::{self, ConnectOptions, SocketSettings};
use linerate_sys::signals::InterruptSignals;
use std::net::SocketAddr;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::client::HttpTarget;
use super::config::{self, HttpsUrl, MAX_CONFIGURATION, ServerObjects};
use super::phase::{PhaseContext, RunningPhase};
use super::probe::{self, TestEvent};
use super::server::HTTP2;

/// Time between two probes of the idle path.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// Longest wait for an empty queue after a load, and the time between two looks at it.
const MAX_DRAIN: Duration = Duration::from_secs(10);
const DRAIN_INTERVAL: Duration = Duration::from_millis(200);

/// Handshake that is no longer than this, or twice the idle one, meets no queue.
const SHORT_HANDSHAKE: Duration = Duration::from_millis(10);

/// Options of a test in addition to those of all measurements of latency under load.
#[derive(Clone, Debug)]
pub struct HttpTestOptions {
    /// URL of the configuration.
    pub url: HttpsUrl,
    /// Other hosts to which the configuration may send the load.
    pub other_hosts: Vec<String>,
}

/// Runs the test and reports its events to `observer`. `stop` ends it early with a partial result.
pub fn run(
    options: &LoadTestOptions,
    test: &HttpTestOptions,
    stop: Option<InterruptSignals>,
    observer: &mut dyn FnMut(&LoadEvent),
) -> LoadTestOutcome {
    let mut record = HttpLoadRecord::new(options, stop, observer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(measure(options, test, stop, &mut record)),
        Err(cause) => Err(HttpTestEnd::Failed(format!("starting: {}", linerate_sys::describe_os_error(&cause)))),
    };
    record.finish(result)
}

async fn measure(
    options: &LoadTestOptions,
    test: &HttpTestOptions,
    stop: Option<InterruptSignals>,
    record: &mut HttpLoadRecord<'_>,
) -> Result<(), HttpTestEnd> {
    let (target, objects) = interruptible(stop, configured(options, test, record)).await?;
    let objects = Arc::new(objects);
    let context = PhaseContext { target: &target, objects: &objects, options, stop };
    let mut idle = None;
    for (index, kind) in options.phases.iter().enumerate() {
        if index > 0 && options.phases[index - 1] != PhaseKind::Idle {
            drain(&context, idle).await?;
        }
        record.begin(*kind);
        match kind {
            PhaseKind::Idle => idle = probe_idle(&context, record).await?,
            kind => RunningPhase::new(&context, *kind).run(record).await?,
        }
    }
    Ok(())
}

/// Ends a future early when a signal arrives.
async fn interruptible<T>(
    stop: Option<InterruptSignals>,
    future: impl Future<Output = Result<T, String>>,
) -> Result<T, HttpTestEnd> {
    let mut future = core::pin::pin!(future);
    loop {
        if let Ok(outcome) = tokio::time::timeout(IDLE_INTERVAL, future.as_mut()).await {
            return outcome.map_err(HttpTestEnd::Failed);
        }
        if stop.is_some_and(|stop| stop.pending().is_some()) {
            return Err(HttpTestEnd::Interrupted);
        }
    }
}

/// Fetches the configuration; returns the server of the load and its objects.
async fn configured(
    options: &LoadTestOptions,
    test: &HttpTestOptions,
    record: &mut HttpLoadRecord<'_>,
) -> Result<(HttpTarget, ServerObjects), String> {
    let first = target_of(options, &test.url)?;
    let mut opened = first.open().await?;
    let configuration = first.get(&mut opened.sender, &test.url.path, MAX_CONFIGURATION).await?;
    let objects = config::parse(&configuration, &test.url, &test.other_hosts)?;
    if let Some(host) = &objects.ignored_endpoint {
        record.note(format!(
            "The configuration asks for connections to {host} instead; they go to the host of its URLs."
        ));
    }
    let is_same = (&objects.host.host, objects.host.port) == (&test.url.host, test.url.port);
    let target = if is_same { first } else { target_of(options, &objects.host)? };
    record.server(target.connect.remote, opened.tls_version);
    Ok((target, objects))
}

/// Resolves a host once, so that all connections go to one address.
fn target_of(options: &LoadTestOptions, url: &HttpsUrl) -> Result<HttpTarget, String> {
    let target = &options.target;
    let tls = target.tls.as_deref().cloned();
    let tls = tls.unwrap_or(TlsClientOptions { trust: ServerTrust::System, certificate: None });
    let config = https::client(&tls, &[HTTP2]).map_err(|cause| cause.to_string())?;
    let addresses = net::resolve(&url.host, url.port, target.family).map_err(|cause| cause.to_string())?;
    let fits = |address: &&SocketAddr| target.bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4());
    let remote = addresses.iter().find(fits).copied();
    let remote = remote.ok_or_else(|| format!("{} has no address of the family of this host's", url.host))?;
    let name = ServerName::try_from(url.host.clone()).map_err(|_| format!("\"{}\" is no host name", url.host))?;
    let connect = ConnectOptions {
        bind: target.bind.map(|address| SocketAddr::new(address, 0)),
        device: target.device.clone(),
        settings: SocketSettings { congestion: options.congestion_control.clone(), ..SocketSettings::default() },
        ..ConnectOptions::to(remote)
    };
    let authority = url.authority();
    Ok(HttpTarget { connect, tls: TlsConnector::from(config), trust: tls.trust, name, authority })
}

/// Probes the path without a load; returns the shortest handshake.
async fn probe_idle(
    context: &PhaseContext<'_>,
    record: &mut HttpLoadRecord<'_>,
) -> Result<Option<Duration>, HttpTestEnd> {
    let opened = interruptible(context.stop, context.target.open()).await?;
    let (events, mut happened) = unbounded_channel();
    let started = clock::monotonic_now();
    let (mut foreign, mut loaded) = (Vec::new(), Vec::new());
    let mut tasks = tokio::task::JoinSet::new();
    let mut failure = None;
    while clock::monotonic_now().since(started) < context.options.idle_time && !record.is_phase_ended() {
        context.check()?;
        let (target, objects) = (context.target.clone(), Arc::clone(context.objects));
        tasks.spawn(probe::foreign(target.clone(), Arc::clone(&objects), events.clone()));
        tasks.spawn(probe::loaded(target, objects, opened.sender.clone(), events.clone()));
        sleep(IDLE_INTERVAL).await;
        while let Ok(event) = happened.try_recv() {
            match event {
                TestEvent::Foreign(at, result) => {
                    foreign.push((at, result.map_err(|reason| failure = Some(reason)).ok()));
                }
                TestEvent::Loaded(at, result) => {
                    loaded.push((at, result.map_err(|reason| failure = Some(reason)).ok()));
                }
                TestEvent::Opened(_) | TestEvent::Broken(_) => {}
            }
        }
        while tasks.try_join_next().is_some() {}
        let round_trip = loaded.last().and_then(|(_, time)| *time);
        record.report(&LoadEvent::Progress(LoadFigures { round_trip, ..LoadFigures::default() }));
    }
    if let Some(reason) = failure {
        record.note(format!("A probe of the idle path failed: {reason}."));
    }
    let shortest = foreign.iter().filter_map(|(_, probe)| probe.as_ref()).map(|probe| probe.tcp).min();
    record.end(HttpPhaseSamples {
        counted: (started, clock::monotonic_now()),
        loads: Vec::new(),
        connections: 1,
        intervals: 0,
        goodput: Confidence::Low,
        responsiveness: Confidence::Low,
        foreign,
        loaded,
    });
    Ok(shortest)
}

/// Waits until the queue of the load before is empty.
async fn drain(context: &PhaseContext<'_>, idle: Option<Duration>) -> Result<(), HttpTestEnd> {
    let most = idle.map_or(SHORT_HANDSHAKE, |idle| idle * 2).max(SHORT_HANDSHAKE);
    let started = clock::monotonic_now();
    while clock::monotonic_now().since(started) < MAX_DRAIN {
        context.check()?;
        sleep(DRAIN_INTERVAL).await;
        let handshake = tokio::time::timeout(most, context.target.open_tcp()).await;
        if handshake.is_ok_and(|opened| opened.is_ok()) {
            return Ok(());
        }
    }
    Ok(())
}
