//! `/probe` in the manner of `blackbox_exporter`: a short measurement of a path at each scrape.
//!
//! Each probe is a `linerate path` of its own: a few packets, and no search for the capacity. The hosts and the number of probes
//! at once are bounded, since anyone who reaches the address can ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linerate_documents::run::RunDocument;
use linerate_export::{Exposition, HttpRequest};
use linerate_fleet::is_plain_host;
use linerate_model::json;
use linerate_sys::clock::monotonic_now;
use linerate_sys::{command, process};

use crate::http_server::HttpResponse;

/// Largest number of probes at once.
const MAX_PROBES: usize = 4;

/// Packets per direction: a quarter of a second at the rate of `linerate path`.
const PACKETS: &str = "50";

/// Time for a probe without a time of the scraper, and the longest one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that the scraper needs for the answer.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);

/// Host that may be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeHost {
    /// Name in the description.
    pub(crate) name: String,
    /// Name or address to which `linerate path` connects.
    pub(crate) address: String,
}

/// Metric of a probe.
#[derive(Debug)]
struct ProbeModule {
    name: &'static str,
    metric: &'static str,
    help: &'static str,
    /// Figures of the run, each with its direction.
    figures: &'static [(&'static str, &'static str)],
    /// Value of the metric for a figure of 1.
    scale: f64,
}

/// Modules; the first one is the default.
const MODULES: [ProbeModule; 3] = [
    ProbeModule {
        name: "rtt",
        metric: "probe_rtt_seconds",
        help: "Median round-trip time.",
        figures: &[("rtt_idle_median", "")],
        scale: 1e-9,
    },
    ProbeModule {
        name: "loss",
        metric: "probe_loss_ratio",
        help: "Lost packets / sent packets.",
        figures: &[("loss_up", "up"), ("loss_down", "down")],
        scale: 1.0,
    },
    ProbeModule {
        name: "mtu",
        metric: "probe_mtu_bytes",
        help: "Path MTU.",
        figures: &[("mtu_up", "up"), ("mtu_down", "down")],
        scale: 1.0,
    },
];

/// Probes of a fleet's hosts.
#[derive(Debug)]
pub(super) struct ProbeService {
    hosts: Vec<ProbeHost>,
    is_any_allowed: bool,
    program: String,
    active: Arc<AtomicUsize>,
}

impl ProbeService {
    pub(super) fn new(hosts: Vec<ProbeHost>, is_any_allowed: bool) -> Result<Self, String> {
        let program = process::own_program().map_err(|error| error.to_string())?.to_string_lossy().into_owned();
        Ok(Self { hosts, is_any_allowed, program, active: Arc::default() })
    }

    pub(super) fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let bad = |reason: &str| HttpResponse::refusal("400 Bad Request", reason);
        let wanted = request.parameter("module");
        let is_wanted = |module: &&ProbeModule| wanted.as_ref().is_none_or(|wanted| wanted == module.name);
        let Some(module) = MODULES.iter().find(is_wanted) else {
            return bad("unknown module (expected one of: rtt, loss, mtu)");
        };
        let Some(target) = request.parameter("target") else { return bad("the parameter \"target\" is missing") };
        let Some(address) = self.address(&target) else {
            let reason = "this host is not tested here: --probe-any allows any host name or address";
            return HttpResponse::refusal("403 Forbidden", reason);
        };
        let Some(_slot) = ProbeSlot::take(&self.active) else {
            return HttpResponse::refusal("503 Service Unavailable", "too many probes at once");
        };
        HttpResponse::metrics(self.measure(&address, module, timeout(request.scrape_timeout)))
    }

    /// Address of a host that may be probed.
    fn address(&self, target: &str) -> Option<String> {
        let is_it = |host: &&ProbeHost| host.name == target || host.address == target;
        let known = self.hosts.iter().find(is_it).map(|host| host.address.clone());
        // A host is an argument: none is an option.
        let known = known.filter(|address| !address.starts_with('-'));
        known.or_else(|| (self.is_any_allowed && is_plain_host(target)).then(|| target.to_owned()))
    }

    fn measure(&self, address: &str, module: &ProbeModule, timeout: Duration) -> String {
        let start = monotonic_now();
        let arguments = ["--no-history", "path", "--no-capacity", "--count", PACKETS, "--json", address];
        let output = command::run(&self.program, &arguments, None, timeout);
        let document = output.ok().filter(|output| output.status.success());
        let run: Option<RunDocument> = document.and_then(|output| json::from_slice(&output.stdout).ok());
        page(run.as_ref(), module, monotonic_now() - start)
    }
}

/// One of [`MAX_PROBES`].
struct ProbeSlot(Arc<AtomicUsize>);

impl ProbeSlot {
    fn take(active: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |count: usize| (count < MAX_PROBES).then_some(count + 1);
        let taken = active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self(Arc::clone(active)))
    }
}

impl Drop for ProbeSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Time for the measurement: that of the scraper less the time for the answer.
fn timeout(of_scraper: Option<Duration>) -> Duration {
    let least = ANSWER_MARGIN / 2;
    of_scraper.map_or(DEFAULT_TIMEOUT, |time| time.saturating_sub(ANSWER_MARGIN)).clamp(least, MAX_TIMEOUT)
}

/// Metrics of a probe. It is a success when a figure of the module is known; unknown figures have no series.
fn page(run: Option<&RunDocument>, module: &ProbeModule, duration: Duration) -> String {
    let value = |name: &str| run?.figures.iter().find(|figure| figure.name == name)?.value;
    let values: Vec<(&str, f64)> =
        module.figures.iter().filter_map(|(name, direction)| Some((*direction, value(name)? * module.scale))).collect();
    let mut page = Exposition::default();
    page.family("probe_success", "1 when the module's figure was measured.", "gauge");
    page.series("probe_success", &[], u8::from(!values.is_empty()));
    page.family("probe_duration_seconds", "Duration of the probe.", "gauge");
    page.series("probe_duration_seconds", &[], duration.as_secs_f64());
    if !values.is_empty() {
        page.family(module.metric, module.help, "gauge");
    }
    for (direction, value) in values {
        page.series(module.metric, &[("direction", direction)], value);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(is_any_allowed: bool) -> ProbeService {
        let hosts = vec![ProbeHost { name: "lisbon".to_owned(), address: "192.0.2.1:5301".to_owned() }];
        ProbeService::new(hosts, is_any_allowed).expect("a program")
    }

    #[test]
    fn only_hosts_of_the_description_are_probed() {
        let (closed, open) = (service(false), service(true));
        for target in ["lisbon", "192.0.2.1:5301"] {
            assert_eq!(closed.address(target).as_deref(), Some("192.0.2.1:5301"), "{target}");
        }
        for target in ["porto", "192.0.2.2", "2001:db8::1", "porto:5301", "[2001:db8::1]:5301"] {
            assert_eq!((closed.address(target), open.address(target).as_deref()), (None, Some(target)), "{target}");
        }
        for target in [
            "",
            "-v",
            "--help",
            "ssh:root@a",
            "lab:cable-bloat",
            "a/b",
            "a b",
            "a;b",
            "$(x)",
            "lab:1",
            "ssh:1",
            "a:x",
            "-a:1",
            &"a".repeat(254),
        ] {
            assert_eq!((closed.address(target), open.address(target)), (None, None), "{target}");
        }
    }

    #[test]
    fn a_scraper_has_the_answer_before_it_gives_up() {
        let of = |millis| timeout(Some(Duration::from_millis(millis))).as_millis();
        assert_eq!((of(3000), of(600), of(0), of(600_000)), (2500, 250, 250, 60_000));
        assert_eq!(timeout(None), DEFAULT_TIMEOUT);
    }

    #[test]
    fn a_failed_probe_has_no_figures() {
        let page = page(None, &MODULES[1], Duration::from_millis(250));
        let series: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(series, ["probe_success 0", "probe_duration_seconds 0.25"]);
    }

    #[test]
    fn probes_at_once_are_bounded() {
        let active = Arc::default();
        let slots: Vec<_> = (0..MAX_PROBES).map(|_| ProbeSlot::take(&active)).collect();
        assert!(slots.iter().all(Option::is_some) && ProbeSlot::take(&active).is_none());
        drop(slots);
        assert!(ProbeSlot::take(&active).is_some());
    }
}
