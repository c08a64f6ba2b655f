//! Export of results while tests run: to OpenTelemetry receivers, to Prometheus, and to a file.
//!
//! Everything is read from the log of results, so that nothing is lost while a receiver is away or this process is not there.

mod arguments;
#[cfg(feature = "otlp")]
mod download;
mod end_signal;
mod latest_page;
mod live_page;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
mod otlp_client;
mod probe;
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "only OTLP ships"))]
mod shipping_state;

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use linerate_export::HttpRequest;
use linerate_history::result_log::ResultLog;

pub(crate) use arguments::ExportArguments;
#[cfg(feature = "otlp")]
use arguments::OtlpArguments;
#[cfg(feature = "otlp")]
pub(crate) use download::download;
use end_signal::{EndSignal, FLUSH_LIMIT};
#[cfg(feature = "otlp")]
use otlp::{OtlpShipper, ShippingStep};
#[cfg(feature = "otlp")]
use otlp_client::OtlpUrl;
pub(crate) use probe::ProbeHost;
use probe::ProbeService;
use shipping_state::ShippingState;

use crate::console;
use crate::http_server::{HttpResponse, HttpServer};
use latest_page::LatestPage;
use live_page::LivePage;

/// Time between looks into the log: any process may write there.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Time that threads have to end after their last request.
const END_MARGIN: Duration = Duration::from_secs(1);

/// Threads that export the results of a log. Dropping it ships what is left, for at most some seconds.
#[derive(Debug)]
pub(crate) struct Exporter {
    signal: Arc<EndSignal>,
    /// Disconnected when all threads have ended.
    ends: Mutex<mpsc::Receiver<()>>,
}

impl Exporter {
    /// Starts the threads for these options; none without options. `/probe` measures `hosts`.
    ///
    /// # Errors
    ///
    /// Text for the user: an address or a file that cannot be used, a header without its file.
    pub(crate) fn start(arguments: &ExportArguments, log: &ResultLog, hosts: Vec<ProbeHost>) -> Result<Self, String> {
        let signal = Arc::new(EndSignal::default());
        let (alive, ends) = mpsc::channel();
        let shipping = start_shipping(arguments, log, &signal, &alive)?;
        if arguments.metrics.is_some() || arguments.textfile.is_some() {
            let page = Arc::new(LatestPage::new(log, arguments.textfile.clone(), shipping)?);
            if let Some(address) = arguments.metrics {
                serve(address, Arc::clone(&page), LivePage::new(log), ProbeService::new(hosts, arguments.probe_any)?)?;
            }
            let signal = Arc::clone(&signal);
            spawn("export-metrics", alive, move || page.follow(&signal))?;
        }
        Ok(Self { signal, ends: Mutex::new(ends) })
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.signal.end();
        // Nothing is ever sent: the channel ends with the last thread.
        let ends = self.ends.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ends.recv_timeout(FLUSH_LIMIT + END_MARGIN);
    }
}

/// Starts a thread, with a sign of its life.
fn spawn(name: &str, alive: mpsc::Sender<()>, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        work();
        drop(alive);
    });
    thread.map(drop).map_err(|cause| format!("starting a thread: {}", linerate_sys::describe_os_error(&cause)))
}

#[cfg(not(feature = "otlp"))]
fn start_shipping(
    _: &ExportArguments,
    _: &ResultLog,
    _: &Arc<EndSignal>,
    _: &mpsc::Sender<()>,
) -> Result<Option<ShippingState>, String> {
    Ok(None)
}

#[cfg(feature = "otlp")]
fn start_shipping(
    arguments: &ExportArguments,
    log: &ResultLog,
    signal: &Arc<EndSignal>,
    alive: &mpsc::Sender<()>,
) -> Result<Option<ShippingState>, String> {
    let Some(url) = &arguments.otlp.url else { return Ok(None) };
    let state = ShippingState::new(url.text());
    let shipper = OtlpShipper::open(&arguments.otlp, log, state.clone())?;
    let (arguments, log, signal) = (arguments.otlp.clone(), log.clone(), Arc::clone(signal));
    let thread_state = state.clone();
    spawn("export-otlp", alive.clone(), move || ship_until_end(&arguments, &log, shipper, &thread_state, &signal))?;
    Ok(Some(state))
}

#[cfg(feature = "otlp")]
fn ship_until_end(
    arguments: &OtlpArguments,
    log: &ResultLog,
    mut shipper: Option<OtlpShipper>,
    state: &ShippingState,
    signal: &EndSignal,
) {
    loop {
        let deadline = signal.deadline();
        let is_ending = deadline.is_some();
        let step = if let Some(shipper) = &mut shipper {
            shipper.ship(deadline)
        } else {
            // Another process ships this log.
            match OtlpShipper::open(arguments, log, state.clone()) {
                Ok(opened) => shipper = opened,
                Err(reason) => state.unavailable(&reason),
            }
            if shipper.is_some() { ShippingStep::Progress } else { ShippingStep::Pause(LOG_INTERVAL) }
        };
        match step {
            ShippingStep::Progress => {}
            ShippingStep::Complete | ShippingStep::Pause(_) if is_ending => return,
            ShippingStep::Complete => signal.wait(LOG_INTERVAL),
            ShippingStep::Pause(pause) => signal.wait(pause),
        }
    }
}

/// Result of shipping a log once.
#[cfg(feature = "otlp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShippedLog {
    /// Results that the receiver took, and those that it refused.
    pub(crate) counts: (usize, usize),
    /// False when the receiver stopped taking results.
    pub(crate) is_complete: bool,
}

/// Ships what a receiver does not have yet, until it has everything or takes no more.
///
/// # Errors
///
/// Text for the user.
#[cfg(feature = "otlp")]
pub(crate) fn ship_once(arguments: &OtlpArguments, log: &ResultLog) -> Result<ShippedLog, String> {
    let url = arguments.url.as_ref().map(OtlpUrl::text).unwrap_or_default();
    let state = ShippingState::new(url);
    let Some(mut shipper) = OtlpShipper::open(arguments, log, state.clone())? else {
        return Err(format!("another linerate sends {} to {url} already", log.directory().display()));
    };
    loop {
        match shipper.ship(None) {
            ShippingStep::Progress => {}
            ShippingStep::Complete => return Ok(ShippedLog { counts: state.counts(), is_complete: true }),
            ShippingStep::Pause(_) => return Ok(ShippedLog { counts: state.counts(), is_complete: false }),
        }
    }
}

/// Serves `/metrics`, `/probe` and the live page.
fn serve(
    address: std::net::SocketAddr,
    page: Arc<LatestPage>,
    live: LivePage,
    probes: ProbeService,
) -> Result<(), String> {
    let answer = move |request: &HttpRequest| match request.path.as_str() {
        "/" => match live.html() {
            Ok(html) => HttpResponse::html(html),
            Err(reason) => HttpResponse::refusal("500 Internal Server Error", &reason),
        },
        "/metrics" => HttpResponse::metrics(page.text()),
        "/probe" => probes.answer(request),
        _ => HttpResponse::refusal("404 Not Found", "there are /, /metrics and /probe?target=HOST&module=rtt|loss|mtu"),
    };
    let server = HttpServer::start(address, answer)
        .map_err(|cause| format!("serving metrics at {address}: {}", linerate_sys::describe_os_error(&cause)))?;
    console::note(&format!("metrics at http://{}/metrics", server.address));
    Ok(())
}
